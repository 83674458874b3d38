package output

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"mcpbench/metrics"
)

// journalMeta is what a segment needs to become tables by itself. It is the
// first record of each segment; a later one replaces it.
type journalMeta struct {
	SchemaVersion int              `json:"schema_version"`
	RunID         string           `json:"run_id"`
	Agent         string           `json:"agent"`
	Segment       int              `json:"segment"`
	T0            int64            `json:"t0_us"` // Unix microseconds of offset 0
	Warmup        time.Duration    `json:"warmup_ns"`
	GroupRows     int              `json:"row_group_rows"`
	Catalog       *metrics.Catalog `json:"catalog"`
	Run           *RunFile         `json:"run,omitempty"`
}

func appendMeta(dst []byte, m *journalMeta) ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode journal metadata: %w", err)
	}
	dst = append(dst, byte(recordMeta))
	return append(binary.AppendUvarint(dst, uint64(len(data))), data...), nil
}

func (d *decoder) meta() (*journalMeta, error) {
	data := d.bytes()
	if d.err != nil {
		return nil, d.err
	}
	return parseMeta(data)
}

func parseMeta(data []byte) (*journalMeta, error) {
	m := &journalMeta{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("read journal metadata: %w", err)
	}
	if m.SchemaVersion > SchemaVersion {
		return nil, laterVersion("the journal", m.SchemaVersion)
	}
	if err := m.valid(); err != nil {
		return nil, err
	}
	return m, nil
}

// errLater says that files are of a later version. Nothing is done with them.
var errLater = errors.New("use a later one")

func laterVersion(what string, version int) error {
	return fmt.Errorf("%s has schema version %d, and this mcpbench knows %d: %w", what, version, SchemaVersion, errLater)
}

// valid makes sure that every index in the catalog means something.
func (m *journalMeta) valid() error {
	if m.Catalog == nil || m.RunID == "" || m.Agent == "" {
		return fmt.Errorf("journal metadata without run id, agent or catalog: %w", errRecord)
	}
	for i := range m.Catalog.Groups {
		if t := m.Catalog.Groups[i].Target; t < 0 || t >= len(m.Catalog.Targets) {
			return fmt.Errorf("journal metadata: group %d has no target: %w", i, errRecord)
		}
	}
	for i := range m.Catalog.Steps {
		if g := m.Catalog.Steps[i].Group; g < 0 || g >= len(m.Catalog.Groups) {
			return fmt.Errorf("journal metadata: step %d has no group: %w", i, errRecord)
		}
	}
	return nil
}

// appendInterval appends one record. The histograms are written in the plain
// encoding, a few microseconds each; the compressed one that the column holds
// costs a hundred times that and is made when the segment becomes a part.
func appendInterval(dst []byte, v *metrics.Interval) ([]byte, error) {
	dst = append(dst, byte(recordInterval), v.Proto, byte(v.Phase), byte(v.Class))
	dst = binary.AppendVarint(dst, v.Second)
	dst = binary.AppendUvarint(dst, uint64(v.Trial))
	dst = binary.AppendUvarint(dst, uint64(v.Step))
	for _, n := range [...]int64{v.Count, v.BytesOut, v.BytesIn, int64(v.Min), int64(v.Max)} {
		dst = binary.AppendVarint(dst, n)
	}
	dst = appendCounts(dst, v.Outcomes[:])
	dst = appendCounts(dst, v.Passed)
	dst = appendCounts(dst, v.Failed)
	dst, err := appendPlain(dst, v.Hist)
	if err != nil {
		return nil, err
	}
	return appendPlain(dst, v.Service)
}

func appendLoad(dst []byte, v *metrics.LoadRow) ([]byte, error) {
	dst = append(dst, byte(recordLoad), v.Group, byte(v.Phase))
	dst = binary.AppendVarint(dst, v.Second)
	dst = binary.AppendUvarint(dst, uint64(v.Trial))
	for _, n := range [...]int64{
		v.Intended, v.Started, v.Completed, v.Dropped,
		int64(v.SessionsWanted), int64(v.SessionsActive), int64(v.SessionsConnecting), int64(v.InFlight),
	} {
		dst = binary.AppendVarint(dst, n)
	}
	dst, err := appendPlain(dst, v.Lateness)
	if err != nil {
		return nil, err
	}
	return appendPlain(dst, v.Queued)
}

func appendCounts(dst []byte, counts []int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(counts)))
	for _, n := range counts {
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

// appendPlain appends a histogram with its length before it, in four bytes so
// that it can be filled in after; 0 stands for none, or one without values.
func appendPlain(dst []byte, h *hdrhistogram.Histogram) ([]byte, error) {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if h == nil || h.TotalCount() == 0 {
		return dst, nil
	}
	dst, err := appendHistogram(dst, h)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4)) //nolint:gosec // a histogram has some KiB
	return dst, nil
}

func (d *decoder) interval(v *metrics.Interval, cat *metrics.Catalog) {
	v.Proto, v.Phase, v.Class = d.byte(), metrics.Phase(d.byte()), metrics.Class(d.byte())
	v.Second = d.varint()
	v.Trial, v.Step = uint16(d.uvarint()), uint16(d.uvarint()) //nolint:gosec // written from uint16
	v.Count, v.BytesOut, v.BytesIn = d.varint(), d.varint(), d.varint()
	v.Min, v.Max = d.duration(), d.duration()
	outcomes := d.counts()
	if len(outcomes) > len(v.Outcomes) {
		d.fail()
		return
	}
	copy(v.Outcomes[:], outcomes)
	v.Passed, v.Failed = d.counts(), d.counts()
	v.Hist, v.Service = d.plain(), d.plain()
	if d.err == nil && (int(v.Step) >= len(cat.Steps) || int(v.Proto) >= len(cat.Protocols) ||
		v.Phase > metrics.PhaseSetup || v.Class >= metrics.NumClasses) {
		d.fail()
	}
}

func (d *decoder) load(v *metrics.LoadRow, cat *metrics.Catalog) {
	v.Group, v.Phase = d.byte(), metrics.Phase(d.byte())
	v.Second = d.varint()
	v.Trial = uint16(d.uvarint()) //nolint:gosec // written from a uint16
	v.Intended, v.Started, v.Completed, v.Dropped = d.varint(), d.varint(), d.varint(), d.varint()
	v.SessionsWanted, v.SessionsActive = int(d.varint()), int(d.varint())
	v.SessionsConnecting, v.InFlight = int(d.varint()), int(d.varint())
	v.Lateness, v.Queued = d.plain(), d.plain()
	if d.err == nil && (int(v.Group) >= len(cat.Groups) || v.Phase > metrics.PhaseSetup) {
		d.fail()
	}
}

// counts is nil for a list of none.
func (d *decoder) counts() []int64 {
	n := d.count()
	if n == 0 {
		return nil
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = d.varint()
	}
	return out
}

// plain is nil for a histogram without values.
func (d *decoder) plain() *hdrhistogram.Histogram {
	b := d.take(4)
	if b == nil {
		return nil
	}
	data := d.take(uint64(binary.LittleEndian.Uint32(b)))
	if len(data) == 0 {
		return nil
	}
	h, err := decodeHistogram(data)
	if err != nil {
		d.fail()
		return nil
	}
	return h
}
