package target

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Shape is the kind of a delay distribution.
type Shape uint8

// The shapes of a Delay.
const (
	Fixed       Shape = iota // always Low
	Exponential              // exponentially distributed with mean Low
	Bimodal                  // High with probability Share, otherwise Low
)

// Delay is the time a request spends in the server before it is answered. The
// zero value is no delay.
type Delay struct {
	Shape     Shape
	Low, High time.Duration
	Share     float64 // of requests that take High, from 0 to 1
}

// ParseDelay reads "5ms" (fixed), "exp:5ms" (exponential, mean 5 ms) or
// "bimodal:2ms,200ms,0.05" (200 ms for 5 % of the requests, otherwise 2 ms).
// The empty string is no delay.
func ParseDelay(s string) (Delay, error) {
	if s == "" {
		return Delay{}, nil
	}
	d, err := parseDelay(s)
	if err == nil {
		err = d.validate()
	}
	if err != nil {
		return Delay{}, fmt.Errorf("delay %q: %w (want 5ms, exp:5ms or bimodal:2ms,200ms,0.05)", s, err)
	}
	return d, nil
}

func parseDelay(s string) (Delay, error) {
	shape, rest, found := strings.Cut(s, ":")
	if !found {
		low, err := time.ParseDuration(s)
		return Delay{Low: low}, err
	}
	switch shape {
	case "exp":
		mean, err := time.ParseDuration(rest)
		return Delay{Shape: Exponential, Low: mean}, err
	case "bimodal":
		parts := strings.Split(rest, ",")
		if len(parts) != 3 {
			return Delay{}, fmt.Errorf("bimodal has %d values, not 3", len(parts))
		}
		low, err := time.ParseDuration(parts[0])
		if err != nil {
			return Delay{}, err
		}
		high, err := time.ParseDuration(parts[1])
		if err != nil {
			return Delay{}, err
		}
		share, err := strconv.ParseFloat(parts[2], 64)
		return Delay{Shape: Bimodal, Low: low, High: high, Share: share}, err
	default:
		return Delay{}, fmt.Errorf("unknown shape %q", shape)
	}
}

func (d Delay) validate() error {
	if d.Low < 0 || d.High < 0 {
		return fmt.Errorf("a delay cannot be negative")
	}
	if !isShare(d.Share) {
		return fmt.Errorf("share %v is not between 0 and 1", d.Share)
	}
	return nil
}

// String returns the form that ParseDelay reads.
func (d Delay) String() string {
	switch d.Shape {
	case Exponential:
		return "exp:" + d.Low.String()
	case Bimodal:
		return fmt.Sprintf("bimodal:%v,%v,%v", d.Low, d.High, d.Share)
	case Fixed:
	}
	return d.Low.String()
}

// draw always takes the same number of values from r, so that what is drawn
// after it does not depend on the shape.
func (d Delay) draw(r *rand.Rand) time.Duration {
	u := r.Float64()
	switch d.Shape {
	case Exponential:
		return time.Duration(-math.Log1p(-u) * float64(d.Low))
	case Bimodal:
		if u < d.Share {
			return d.High
		}
	case Fixed:
	}
	return d.Low
}

// isShare is written so that NaN is no share.
func isShare(x float64) bool { return x >= 0 && x <= 1 }

// Freeze makes the whole server stop for a time after every so many answered
// tool calls, as a collector pause or a lock would. The zero value is no freeze.
type Freeze struct {
	Every int           // tool calls between two freezes
	For   time.Duration // length of each
}

// ParseFreeze reads "every=300,for=400ms". The empty string is no freeze.
func ParseFreeze(s string) (Freeze, error) {
	if s == "" {
		return Freeze{}, nil
	}
	f, err := parseFreeze(s)
	if err != nil {
		return Freeze{}, fmt.Errorf("freeze %q: %w (want every=300,for=400ms)", s, err)
	}
	return f, nil
}

func parseFreeze(s string) (Freeze, error) {
	var f Freeze
	for part := range strings.SplitSeq(s, ",") {
		key, value, found := strings.Cut(part, "=")
		if !found {
			return Freeze{}, fmt.Errorf("%q has no value", part)
		}
		var err error
		switch key {
		case "every":
			f.Every, err = strconv.Atoi(value)
		case "for":
			f.For, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return Freeze{}, err
		}
	}
	if f.Every <= 0 || f.For <= 0 {
		return Freeze{}, fmt.Errorf("every and for must both be more than 0")
	}
	return f, nil
}

func (f Freeze) validate() error {
	if f.Every < 0 || f.For < 0 || (f.Every > 0) != (f.For > 0) {
		return fmt.Errorf("freeze: every and for must be set together and not be negative")
	}
	return nil
}

// String returns the form that ParseFreeze reads.
func (f Freeze) String() string {
	if f == (Freeze{}) {
		return ""
	}
	return fmt.Sprintf("every=%d,for=%v", f.Every, f.For)
}
