package target_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbench/internal/target"
)

func TestParseDelay(t *testing.T) {
	tests := []struct {
		in   string
		want target.Delay
	}{
		{"", target.Delay{}},
		{"5ms", target.Delay{Low: 5 * time.Millisecond}},
		{"0s", target.Delay{}},
		{"exp:1.5s", target.Delay{Shape: target.Exponential, Low: 1500 * time.Millisecond}},
		{"bimodal:2ms,200ms,0.05", target.Delay{
			Shape: target.Bimodal, Low: 2 * time.Millisecond, High: 200 * time.Millisecond, Share: 0.05,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := target.ParseDelay(tt.in)
			if err != nil {
				t.Fatalf("ParseDelay: %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ParseDelay (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseDelayFaults(t *testing.T) {
	for _, in := range []string{
		"5", "ms", "-1ms", "exp:", "exp:-1s", "uniform:1ms", "bimodal:1ms,2ms", "bimodal:1ms,2ms,3ms",
		"bimodal:1ms,2ms,1.5", "bimodal:1ms,2ms,-0.1", "bimodal:1ms,2ms,NaN", "bimodal:1ms,-2ms,0.1", "bimodal:1ms,2ms,0.1,7",
	} {
		if d, err := target.ParseDelay(in); err == nil {
			t.Errorf("ParseDelay(%q) = %v, want an error", in, d)
		}
	}
}

func TestParseFreeze(t *testing.T) {
	want := target.Freeze{Every: 300, For: 400 * time.Millisecond}
	for _, in := range []string{"every=300,for=400ms", "for=400ms,every=300"} {
		got, err := target.ParseFreeze(in)
		if err != nil || got != want {
			t.Errorf("ParseFreeze(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
	if got, err := target.ParseFreeze(""); err != nil || got != (target.Freeze{}) {
		t.Errorf(`ParseFreeze("") = %v, %v, want the zero value`, got, err)
	}
	for _, in := range []string{"300", "every=300", "for=1s", "every=0,for=1s", "every=1,for=0s", "every=1,for=1", "every=x,for=1s", "each=1,for=1s"} {
		if f, err := target.ParseFreeze(in); err == nil {
			t.Errorf("ParseFreeze(%q) = %v, want an error", in, f)
		}
	}
}

func FuzzParseDelay(f *testing.F) {
	for _, seed := range []string{"", "5ms", "exp:5ms", "bimodal:2ms,200ms,0.05", "bimodal:0,0,1", "exp:9223372036854775807ns"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		d, err := target.ParseDelay(in)
		if err != nil {
			return
		}
		again, err := target.ParseDelay(d.String())
		if err != nil || again != d {
			t.Errorf("%q is %v, which is read back as %v, %v", in, d, again, err)
		}
	})
}

func FuzzParseFreeze(f *testing.F) {
	for _, seed := range []string{"", "every=300,for=400ms", "for=1s,every=1", "every=1,every=2,for=1s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		z, err := target.ParseFreeze(in)
		if err != nil {
			return
		}
		again, err := target.ParseFreeze(z.String())
		if err != nil || again != z {
			t.Errorf("%q is %v, which is read back as %v, %v", in, z, again, err)
		}
	})
}

func TestValidateNamesEveryFault(t *testing.T) {
	if err := (target.Config{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
	bad := target.Config{
		Delay:     target.Delay{Low: -1},
		ErrorRate: 0.6, RPCErrorRate: 0.6,
		Freeze:    target.Freeze{Every: 3},
		LeakBytes: -1, MaxSessions: -1,
	}
	err := bad.Validate()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 5 {
		t.Errorf("Validate = %v, want 5 faults", err)
	}
	if _, err := target.New(bad).Listen(t.Context(), "127.0.0.1:0"); err == nil {
		t.Error("Listen took a bad configuration")
	}
	if err := target.New(bad).ServeStdio(t.Context(), nil, nil); err == nil {
		t.Error("ServeStdio took a bad configuration")
	}
}
