package output

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"mcpbench/metrics"
)

// fill sets every field of v, through pointers, to a random value that is not zero.
func fill(v reflect.Value, rng *rand.Rand) {
	switch v.Kind() { //nolint:exhaustive // a field of another kind must make the test fail
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), rng)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, rng)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 3 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, rng)
			fill(value, rng)
			v.SetMapIndex(key, value)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		b := make([]byte, 1+rng.IntN(300))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		v.SetString(string(b))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+rng.IntN(9), 9))
		for i := range v.Len() {
			fill(v.Index(i), rng)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(rng.Uint64()|1) >> (64 - v.Type().Bits()))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint((rng.Uint64() | 1) >> (64 - v.Type().Bits()))
	default:
		panic("a field of a kind that the test does not know: " + v.Kind().String())
	}
}

// wideCatalog has every id that a sample can hold.
func wideCatalog() *metrics.Catalog {
	return &metrics.Catalog{
		Groups: make([]metrics.GroupInfo, 1<<8), Steps: make([]metrics.StepInfo, 1<<16),
		Targets: make([]metrics.TargetInfo, 1), Protocols: make([]string, 1<<8),
	}
}

// recorded collects what a decoder gives.
type recorded struct {
	metas     []journalMeta
	samples   []metrics.Sample
	intervals []metrics.Interval
	loads     []metrics.LoadRow
}

func (r *recorded) meta(m *journalMeta) error      { r.metas = append(r.metas, *m); return nil }
func (r *recorded) sample(s *metrics.Sample) error { r.samples = append(r.samples, *s); return nil }
func (r *recorded) interval(v *metrics.Interval) error {
	r.intervals = append(r.intervals, *v)
	return nil
}
func (r *recorded) loadRow(v *metrics.LoadRow) error { r.loads = append(r.loads, *v); return nil }

// TestEveryFieldOfASampleSurvives fails for a new field that is not encoded.
func TestEveryFieldOfASampleSurvives(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var want []metrics.Sample
	var frames frameBuilder
	add := func(s metrics.Sample) {
		want = append(want, s)
		frames.begin()
		frames.buf = appendSample(frames.buf, &s)
	}
	for i := range 400 {
		var s metrics.Sample
		fill(reflect.ValueOf(&s).Elem(), rng)
		s.Kind, s.Phase = metrics.Kind(i%4), metrics.Phase(i%3)
		s.Outcome = metrics.Outcome(i % metrics.NumIterationOutcomes)
		s.Step %= 1<<16 - 1
		add(s)
		s.Extra.Session.ExitCode, s.Extra.Tags = nil, map[string]string{}
		x := *s.Extra
		s.Extra, x.Session = &x, nil
		add(s)
		x.Tags = nil
		add(s)
		s.Extra = &metrics.Extra{}
		add(s)
		s.Extra, s.HasConnect, s.Intended, s.Release = nil, false, metrics.NoOffset, metrics.NoOffset
		add(s)
	}
	frames.seal()
	var got recorded
	r := newFrameReader(bytes.NewReader(frames.buf), int64(len(frames.buf)))
	for {
		f, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := decodeFrame(f, wideCatalog(), &got); err != nil {
			t.Fatal(err)
		}
	}
	// Extra pointers of one sample are shared between the cases made of it.
	if diff := cmp.Diff(len(want), len(got.samples)); diff != "" {
		t.Fatal(diff)
	}
	for i := range want {
		if i%5 == 0 { // its Extra.Session was changed after it was encoded
			want[i].Extra.Session.ExitCode, want[i].Extra.Tags = got.samples[i].Extra.Session.ExitCode, got.samples[i].Extra.Tags
			if want[i].Extra.Session.ExitCode == nil || len(want[i].Extra.Tags) != 3 {
				t.Errorf("sample %d lost its exit code or tags", i)
			}
		}
		if i%5 == 1 {
			want[i].Extra = &metrics.Extra{
				Connect: got.samples[i].Extra.Connect, Retries: got.samples[i].Extra.Retries, TaskPolls: got.samples[i].Extra.TaskPolls,
				TraceID: got.samples[i].Extra.TraceID, Message: got.samples[i].Extra.Message,
				Tags: map[string]string{},

				HasProgress: true, FirstProgress: got.samples[i].Extra.FirstProgress, LastProgress: got.samples[i].Extra.LastProgress,
				Gaps: got.samples[i].Extra.Gaps, Rounds: got.samples[i].Extra.Rounds, HasCancelStop: true, CancelStop: got.samples[i].Extra.CancelStop,
				HasCache: true, CacheTTL: got.samples[i].Extra.CacheTTL, CacheScope: got.samples[i].Extra.CacheScope,
			}
			if x := got.samples[i].Extra; len(x.Gaps) == 0 || len(x.Rounds) == 0 || x.FirstProgress == 0 || x.LastProgress == 0 || x.CancelStop == 0 || x.CacheTTL == 0 || x.CacheScope == "" {
				t.Errorf("sample %d lost its progress or its hints", i)
			}
		}
		if diff := cmp.Diff(want[i], got.samples[i]); diff != "" {
			t.Fatalf("sample %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestIntervalsAndLoadSurvive(t *testing.T) {
	hist := hdrhistogram.New(int64(metrics.HistogramLowest), int64(metrics.HistogramHighest), metrics.IntervalDigits)
	for i := range int64(2000) {
		if err := hist.RecordValue(1000 + i*i*1000); err != nil {
			t.Fatal(err)
		}
	}
	interval := metrics.Interval{
		Second: -1, Trial: 3, Step: 4, Proto: 5, Phase: metrics.PhaseSetup, Class: metrics.ClassFailed, Count: 6,
		Passed: []int64{7, 0, 8}, Failed: []int64{9, math.MaxInt64, 1}, BytesOut: 10, BytesIn: 11, Min: -12, Max: 13, Hist: hist, Service: hist,
	}
	for i := range interval.Outcomes {
		interval.Outcomes[i] = int64(i * i)
	}
	load := metrics.LoadRow{
		Second: 14, Trial: 15, Group: 16, Phase: metrics.PhaseWarmup, Intended: 17, Started: 18, Completed: 19, Dropped: 20,
		SessionsWanted: 21, SessionsActive: 22, SessionsConnecting: 23, InFlight: 24, Lateness: hist,
	}
	buf, err := appendInterval(nil, &interval)
	if err != nil {
		t.Fatal(err)
	}
	if buf, err = appendLoad(buf, &load); err != nil {
		t.Fatal(err)
	}
	var got recorded
	if err := decodeFrame(frame{payload: buf, count: 2}, wideCatalog(), &got); err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b *hdrhistogram.Histogram) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Equals(b) && a.TotalCount() == b.TotalCount())
	})
	if diff := cmp.Diff([]metrics.Interval{interval}, got.intervals, same); diff != "" {
		t.Errorf("interval (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]metrics.LoadRow{load}, got.loads, same); diff != "" {
		t.Errorf("load row (-want +got):\n%s", diff)
	}
}

// smallJournal has frames of 1, 2, 3 … samples; ends are the offsets behind them.
func smallJournal(frames int) (data []byte, ends []int) {
	var b frameBuilder
	for n := range frames {
		for range n + 1 {
			b.begin()
			b.buf = appendSample(b.buf, &metrics.Sample{Iteration: uint64(len(b.buf)), Extra: &metrics.Extra{Message: "m"}})
		}
		b.seal()
		ends = append(ends, len(b.buf))
	}
	return b.buf, ends
}

// readFrames returns the counts of the frames found.
func readFrames(tb testing.TB, data []byte) (counts []uint32, d damage) {
	tb.Helper()
	r := newFrameReader(bytes.NewReader(data), int64(len(data)))
	for {
		f, err := r.next()
		if errors.Is(err, io.EOF) {
			d = r.damage
			d.places = nil
			return counts, d
		}
		if err != nil {
			tb.Fatal(err)
		}
		counts = append(counts, f.count)
	}
}

func TestTruncationKeepsWholeFrames(t *testing.T) {
	data, ends := smallJournal(6)
	for n := range len(data) + 1 {
		whole, end := 0, 0
		for whole < len(ends) && ends[whole] <= n {
			end = ends[whole]
			whole++
		}
		counts, d := readFrames(t, data[:n])
		if len(counts) != whole || !reflect.DeepEqual(d, damage{TornBytes: int64(n - end)}) {
			t.Fatalf("cut at %d: %d frames and %+v, want %d and %d torn bytes", n, len(counts), d, whole, n-end)
		}
	}
}

func TestFlippedBitCostsItsFrameOnly(t *testing.T) {
	data, ends := smallJournal(5)
	for bit := range len(data) * 8 {
		broken := bytes.Clone(data)
		broken[bit/8] ^= 1 << (bit % 8)
		hit := 0
		for ends[hit] <= bit/8 {
			hit++
		}
		var want []uint32
		for n := range uint32(5) {
			if int(n) != hit {
				want = append(want, n+1)
			}
		}
		start := 0
		if hit > 0 {
			start = ends[hit-1]
		}
		size := int64(ends[hit] - start)
		wantDamage := damage{Gaps: 1, LostRecords: int64(hit + 1), LostBytes: size}
		if hit == 4 {
			wantDamage.LostRecords = 0 // nothing after it tells how many there were
			if length := binary.LittleEndian.Uint32(broken[start+4:]); int64(length) > size-frameHeader && length <= maxPayload {
				wantDamage = damage{TornBytes: size} // it looks like a write that was cut short
			}
		}
		counts, d := readFrames(t, broken)
		if diff := cmp.Diff(want, counts); diff != "" || !reflect.DeepEqual(d, wantDamage) {
			t.Fatalf("bit %d, in frame %d: %+v, want %+v; frames (-want +got):\n%s", bit, hit, d, wantDamage, diff)
		}
	}
}

func TestFrameIsNotReadTwice(t *testing.T) {
	data, ends := smallJournal(3)
	twice := append(bytes.Clone(data[:ends[1]]), data...) // frames 1 and 2 are there twice
	counts, d := readFrames(t, twice)
	if diff := cmp.Diff([]uint32{1, 2, 3}, counts); diff != "" || d.Gaps != 1 || d.LostRecords != 0 {
		t.Errorf("damage %+v, frames (-want +got):\n%s", d, diff)
	}
}

func TestMagicAcrossSearchWindows(t *testing.T) {
	data, _ := smallJournal(1)
	for n := 64<<10 - 6; n < 64<<10+6; n++ {
		counts, d := readFrames(t, append(make([]byte, n), data...))
		if len(counts) != 1 || d.LostBytes != int64(n) {
			t.Errorf("after %d bytes of nothing: %d frames, %+v", n, len(counts), d)
		}
	}
}

// FuzzFrameReader holds the reader against the definition of a frame: what it
// returns stands in the data, in order, with the right checksum; no byte is
// unaccounted for.
func FuzzFrameReader(f *testing.F) {
	data, ends := smallJournal(4)
	f.Add(data)
	f.Add(data[:ends[2]+5])
	f.Add(append([]byte("\xf7MJ1\xff\xff\xff\xff"), data...))
	f.Add([]byte{})
	f.Add(append(bytes.Clone(data), data...))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newFrameReader(bytes.NewReader(data), int64(len(data)))
		var good, expect int64
		at := int64(0)
		for {
			fr, err := r.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			size := int64(frameHeader + len(fr.payload))
			raw := data[r.at-size : r.at]
			sum := crc32.Checksum(append(bytes.Clone(raw[4:16]), raw[20:]...), crc32.MakeTable(crc32.Castagnoli))
			if string(raw[:4]) != frameMagic || binary.LittleEndian.Uint32(raw[16:]) != sum || !bytes.Equal(raw[20:], fr.payload) {
				t.Fatalf("the frame before offset %d is not what the data hold", r.at)
			}
			if r.at-size < at || int64(fr.first) < expect {
				t.Fatal("frames out of order")
			}
			at, expect = r.at, int64(fr.first)+int64(fr.count)
			good += size
			_ = decodeFrame(fr, wideCatalog(), &recorded{}) // must not panic
		}
		if good+r.damage.LostBytes+r.damage.TornBytes != int64(len(data)) {
			t.Fatalf("%d good bytes and %+v in %d", good, r.damage, len(data))
		}
	})
}

// FuzzDecodeFrame gives the decoder payloads whose checksum was right.
func FuzzDecodeFrame(f *testing.F) {
	s := metrics.Sample{Extra: &metrics.Extra{Tags: map[string]string{"a": "b"}, Session: &metrics.SessionInfo{Server: "s"}}}
	f.Add(appendSample(nil, &s), uint32(1))
	interval, err := appendInterval(nil, &metrics.Interval{Hist: hdrhistogram.New(1000, int64(time.Hour), 2), Passed: []int64{1}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(interval, uint32(1))
	load, err := appendLoad(nil, &metrics.LoadRow{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(load, uint32(1))
	meta, err := appendMeta(nil, &journalMeta{SchemaVersion: 1, RunID: "R", Agent: "local", Catalog: &metrics.Catalog{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(meta, uint32(1))
	cat := wideCatalog()
	f.Fuzz(func(t *testing.T, payload []byte, count uint32) {
		var got recorded
		err := decodeFrame(frame{payload: payload, count: count % 100}, cat, &got)
		for i := range got.samples {
			if err := got.samples[i].Kind; err > metrics.KindSession {
				t.Errorf("a sample of kind %d", err)
			}
		}
		if n := len(got.metas) + len(got.samples) + len(got.intervals) + len(got.loads); err == nil && n != int(count%100) {
			t.Errorf("%d records of %d without an error", n, count%100)
		}
	})
}
