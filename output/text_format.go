package output

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpbench/metrics"
)

// thinSpace groups digits in threes (SI Brochure, section 5.4.4).
const thinSpace = "\u2009"

// none stands for a figure without a sample.
const none = "–"

// groupDigits prints n with its digits in groups of three: 18 104.
func groupDigits(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i, digit := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteString(thinSpace)
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// formatMS prints a duration given in milliseconds with two digits or so:
// 85µs, 0.34ms, 8.2ms, 54ms, 1.2s, 2m05s.
func formatMS(ms float64) string {
	switch {
	case ms < 0:
		return "-" + formatMS(-ms)
	case ms == 0:
		return "0ms"
	case ms < 0.0995:
		return fmt.Sprintf("%.0fµs", max(ms*1000, 1))
	case ms < 0.995:
		return trimZeros(fmt.Sprintf("%.2f", ms)) + "ms"
	case ms < 9.95:
		return fmt.Sprintf("%.1fms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0fms", ms)
	case ms < 9950:
		return fmt.Sprintf("%.1fs", ms/1000)
	case ms < 99500:
		return fmt.Sprintf("%.0fs", ms/1000)
	}
	return formatSpan(ms / 1000)
}

// formatSpan prints the length of a phase given in seconds: 5s, 4.2s, 1m20s.
func formatSpan(s float64) string {
	if s < 59.95 {
		return trimZeros(fmt.Sprintf("%.1f", s)) + "s"
	}
	d := time.Duration(math.Round(s)) * time.Second
	h, m, sec := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	if h > 0 {
		return fmt.Sprintf("%dh%02dm%02ds", h, m, sec)
	}
	return fmt.Sprintf("%dm%02ds", m, sec)
}

// trimZeros removes the zeros that end a decimal fraction.
func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// figure is one of the numbers of a distribution. name is that of AtTimeout.
func figure(q *metrics.Quantiles, name string, ms float64) string {
	if q == nil {
		return none
	}
	if slices.Contains(q.AtTimeout, name) {
		return atTimeout(ms)
	}
	return formatMS(ms)
}

// atTimeout prints a figure that falls on a request that timed out: how long
// the answer would have taken is not known.
func atTimeout(ms float64) string {
	s := formatMS(ms)
	unit := strings.TrimLeft(s, "0123456789.")
	return ">" + trimZeros(strings.TrimSuffix(s, unit)) + unit
}

// percent prints part of whole; a share that is not nothing never prints as 0
// and one that is not all never as 100.
func percent(part, whole int64) string {
	if whole == 0 || part == 0 {
		return "0%"
	}
	if part == whole {
		return "100%"
	}
	p := 100 * float64(part) / float64(whole)
	switch {
	case p < 0.01:
		return "<0.01%"
	case p < 0.995:
		return fmt.Sprintf("%.2f%%", p)
	case p > 99.94:
		return fmt.Sprintf("%.1f%%", min(math.Floor(p*10)/10, 99.9))
	}
	return fmt.Sprintf("%.1f%%", p)
}

// errorShare is percent with one digit, for a narrow column.
func errorShare(part, whole int64) string {
	switch {
	case whole == 0:
		return none
	case part == 0:
		return "0.0%"
	case 1000*part < whole:
		return "<0.1%"
	}
	return percentOneDigit(part, whole)
}

func percentOneDigit(part, whole int64) string {
	if part == whole {
		return "100%"
	}
	return fmt.Sprintf("%.1f%%", min(100*float64(part)/float64(whole), 99.9))
}

// perSecond prints a rate: 602.6/s.
func perSecond(rate float64) string {
	whole := math.Floor(rate + 0.05)
	if rate < 9.95 {
		return trimZeros(fmt.Sprintf("%.2f", rate)) + "/s"
	}
	fraction := strconv.FormatFloat(rate, 'f', 1, 64)
	return groupDigits(int64(whole)) + fraction[len(fraction)-2:] + "/s"
}

// formatBytes prints a size in binary units: 9.4 MiB.
func formatBytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n)/1024, 0
	for value >= 1023.95 && unit < len("KMGTPE")-1 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[unit])
}

// thresholdValue prints the measured value of a threshold in its unit.
func thresholdValue(t *metrics.ThresholdResult) string {
	if t.Value == nil {
		return "no sample"
	}
	v := *t.Value
	switch t.Unit {
	case "ms":
		if t.AtTimeout {
			return atTimeout(v)
		}
		return formatMS(v)
	case "%":
		return percentValue(v)
	case "/s":
		return perSecond(v)
	case "":
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return groupDigits(int64(v))
		}
		return trimZeros(strconv.FormatFloat(v, 'f', 4, 64))
	}
	return trimZeros(strconv.FormatFloat(v, 'f', 2, 64)) + Escape(t.Unit)
}

// percentValue prints a share given in percent. It needs enough digits to be
// held against its limit.
func percentValue(v float64) string {
	switch {
	case v == 0, v == 100:
		return fmt.Sprintf("%.0f%%", v)
	case math.Abs(v) < 0.01:
		return strconv.FormatFloat(v, 'g', 2, 64) + "%"
	case math.Abs(v) < 1, v > 99 && v < 100:
		return trimZeros(strconv.FormatFloat(math.Trunc(v*100)/100, 'f', 2, 64)) + "%"
	}
	return fmt.Sprintf("%.1f%%", v)
}

// sparkline draws values as blocks of rising height. A flat series stays low:
// the top is at least three times the smallest value. A gap is a part without
// a sample. More values than width are joined by taking the greatest.
func sparkline(values []*float64, width int) string {
	values = joinParts(values, width)
	lo, hi := math.Inf(1), 0.0
	for _, v := range values {
		if v != nil {
			lo, hi = min(lo, *v), max(hi, *v)
		}
	}
	const blocks = "▂▃▄▅▆▇█"
	steps := []rune(blocks)
	span := max(hi, 3*lo) - lo
	var b strings.Builder
	for _, v := range values {
		switch {
		case v == nil:
			b.WriteByte(' ')
		case span <= 0:
			b.WriteRune(steps[0])
		default:
			b.WriteRune(steps[int(math.Round((*v-lo)/span*float64(len(steps)-1)))])
		}
	}
	return b.String()
}

func joinParts(values []*float64, width int) []*float64 {
	if len(values) <= width {
		return values
	}
	out := make([]*float64, width)
	for i := range out {
		for _, v := range values[i*len(values)/width : (i+1)*len(values)/width] {
			if v != nil && (out[i] == nil || *v > *out[i]) {
				out[i] = v
			}
		}
	}
	return out
}
