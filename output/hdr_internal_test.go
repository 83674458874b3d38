package output

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// libraryPlain is the uncompressed encoding as hdrhistogram-go writes it.
func libraryPlain(tb testing.TB, h *hdrhistogram.Histogram) []byte {
	tb.Helper()
	b64, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		tb.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(string(b64))
	if err != nil {
		tb.Fatal(err)
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[8:]))
	if err != nil {
		tb.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return plain
}

// TestHistogramEncodingIsTheLibrarys holds our encoding, before compression,
// byte for byte against that of hdrhistogram-go.
func TestHistogramEncodingIsTheLibrarys(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	var e histEncoder
	for range 50 {
		h := hdrhistogram.New(1000, int64(time.Hour), 1+rng.IntN(3))
		for range rng.IntN(2000) + 1 {
			v := int64(math.Exp(rng.Float64() * math.Log(float64(time.Hour))))
			if err := h.RecordValues(v, rng.Int64N(1<<(1+rng.UintN(50)))+1); err != nil {
				t.Fatal(err)
			}
		}
		plain, err := appendHistogram(nil, h)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := plain, libraryPlain(t, h); !bytes.Equal(got, want) {
			t.Fatalf("encodings differ: %d bytes, want %d", len(got), len(want))
		}
		payload, err := e.encode(h)
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint32(*payload); got != 0x1c849314 {
			t.Errorf("cookie %#x", got)
		}
		back, err := hdrhistogram.Decode([]byte(base64.StdEncoding.EncodeToString(*payload)))
		if err != nil {
			t.Fatal(err)
		}
		if !h.Equals(back) {
			t.Fatal("decoding gives another histogram")
		}
	}
	for _, h := range []*hdrhistogram.Histogram{nil, hdrhistogram.New(1000, int64(time.Hour), 2)} {
		if payload, err := e.encode(h); payload != nil || err != nil {
			t.Errorf("a histogram without a value: got %v, %v; want null", payload, err)
		}
	}
}

func FuzzHistogramEncoding(f *testing.F) {
	f.Add([]byte{1, 2, 3, 250}, uint8(2))
	f.Add(slices.Repeat([]byte{7}, 300), uint8(1))
	f.Fuzz(func(t *testing.T, values []byte, digits uint8) {
		h := hdrhistogram.New(1, 1<<40, 1+int(digits%3))
		for i, v := range values {
			if err := h.RecordValue(int64(v) << (i % 32)); err != nil {
				t.Fatal(err)
			}
		}
		if h.TotalCount() == 0 {
			return
		}
		plain, err := appendHistogram(nil, h)
		if err != nil || !bytes.Equal(plain, libraryPlain(t, h)) {
			t.Fatal("encodings differ")
		}
	})
}

func BenchmarkHistogramEncoding(b *testing.B) {
	h := hdrhistogram.New(1000, int64(time.Hour), 2)
	rng := rand.New(rand.NewPCG(4, 2))
	for range 5000 {
		if err := h.RecordValue(int64(rng.ExpFloat64() * 5e6)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("ours", func(b *testing.B) {
		var e histEncoder
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.encode(h); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err != nil {
				b.Fatal(err)
			}
		}
	})
}
