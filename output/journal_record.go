package output

import (
	"encoding/binary"
	"fmt"
	"time"

	"mcpbench/metrics"
)

// recordKind is the first byte of a record.
type recordKind uint8

// Record kinds. The numbers are part of the format. Those of samples are
// recordSample plus the sample's kind.
const (
	recordMeta     recordKind = 1
	recordInterval recordKind = 2
	recordLoad     recordKind = 3
	recordMark     recordKind = 4 // only in the files of marks
	recordSample   recordKind = 16
)

// Bits of the flags byte of a sample.
const (
	flagHasConnect = 1 << iota
	flagExtra
)

// Bits of the flags byte of an Extra.
const (
	flagTags = 1 << iota
	flagSession
	flagExitCode
	flagProgress
	flagCancelStop
	flagRounds
	flagCache
)

// sampleBytes is the size of a sample without Extra, kind and flags included.
const sampleBytes = 87

// appendSample appends one record. It does not allocate when dst has room.
func appendSample(dst []byte, s *metrics.Sample) []byte {
	at := len(dst)
	if cap(dst)-at >= sampleBytes {
		dst = dst[:at+sampleBytes]
	} else {
		dst = append(dst, make([]byte, sampleBytes)...)
	}
	b, le := dst[at:at+sampleBytes], binary.LittleEndian
	var flags byte
	if s.HasConnect {
		flags |= flagHasConnect
	}
	if s.Extra != nil {
		flags |= flagExtra
	}
	b[0], b[1] = byte(recordSample)+byte(s.Kind), flags
	b[2], b[3], b[4], b[5], b[6] = byte(s.Phase), byte(s.Outcome), s.Proto, s.Rounds, s.Group
	le.PutUint64(b[7:], bits(s.Intended))
	le.PutUint64(b[15:], bits(s.Release))
	le.PutUint64(b[23:], bits(s.Start))
	le.PutUint64(b[31:], bits(s.FirstByte))
	le.PutUint64(b[39:], bits(s.End))
	le.PutUint64(b[47:], s.Iteration)
	le.PutUint32(b[55:], s.Session)
	le.PutUint32(b[59:], uint32(s.Code)) //nolint:gosec // the bits are what is wanted
	le.PutUint32(b[63:], s.BytesOut)
	le.PutUint32(b[67:], s.BytesIn)
	le.PutUint32(b[71:], s.ChecksFailed)
	le.PutUint16(b[75:], s.Step)
	le.PutUint16(b[77:], s.Seq)
	le.PutUint16(b[79:], s.HTTPStatus)
	le.PutUint16(b[81:], s.Trial)
	le.PutUint16(b[83:], s.Notifications)
	le.PutUint16(b[85:], s.Progress)
	if s.Extra != nil {
		dst = appendExtra(dst, s.Extra)
	}
	return dst
}

func bits(d time.Duration) uint64 { return uint64(d) } //nolint:gosec // the bits are what is wanted

func appendExtra(dst []byte, x *metrics.Extra) []byte {
	var flags byte
	if x.Tags != nil { // empty is not nil: it takes the place of the step's tags
		flags |= flagTags
	}
	if x.Session != nil {
		flags |= flagSession
		if x.Session.ExitCode != nil {
			flags |= flagExitCode
		}
	}
	if x.HasProgress { // without it there are no gaps
		flags |= flagProgress
	}
	if x.HasCancelStop {
		flags |= flagCancelStop
	}
	if len(x.Rounds) > 0 {
		flags |= flagRounds
	}
	if x.HasCache {
		flags |= flagCache
	}
	dst = append(dst, flags)
	dst = binary.AppendVarint(dst, int64(x.Connect))
	dst = binary.AppendUvarint(dst, uint64(x.Retries))
	dst = binary.AppendUvarint(dst, uint64(x.TaskPolls))
	dst = appendText(dst, x.TraceID)
	dst = appendText(dst, x.Message)
	if x.Tags != nil {
		dst = binary.AppendUvarint(dst, uint64(len(x.Tags)))
		for key, value := range x.Tags {
			dst = appendText(appendText(dst, key), value)
		}
	}
	if flags&flagProgress != 0 {
		dst = binary.AppendVarint(dst, int64(x.FirstProgress))
		dst = binary.AppendVarint(dst, int64(x.LastProgress))
		dst = appendDurations(dst, x.Gaps)
	}
	if x.HasCancelStop {
		dst = binary.AppendVarint(dst, int64(x.CancelStop))
	}
	if flags&flagRounds != 0 {
		dst = appendDurations(dst, x.Rounds)
	}
	if x.HasCache {
		dst = appendText(binary.AppendVarint(dst, x.CacheTTL), x.CacheScope)
	}
	si := x.Session
	if si == nil {
		return dst
	}
	for _, text := range [...]string{si.Server, si.Transport, si.Requested, si.Negotiated, si.Era, si.EndReason} {
		dst = appendText(dst, text)
	}
	for _, d := range [...]time.Duration{si.Spawn, si.TCP, si.TLS, si.Handshake, si.Ended} {
		dst = binary.AppendVarint(dst, int64(d))
	}
	dst = binary.AppendVarint(dst, si.Requests)
	if si.ExitCode != nil {
		dst = binary.AppendVarint(dst, int64(*si.ExitCode))
	}
	return dst
}

func appendDurations(dst []byte, all []time.Duration) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	for _, d := range all {
		dst = binary.AppendVarint(dst, int64(d))
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// sample decodes what appendSample wrote after the kind, and sees to it that
// every index in it means something in the catalog.
func (d *decoder) sample(s *metrics.Sample, kind metrics.Kind, cat *metrics.Catalog) {
	*s = metrics.Sample{Kind: kind}
	b := d.take(sampleBytes - 1)
	if b == nil {
		return
	}
	le := binary.LittleEndian
	flags := b[0]
	s.Phase, s.Outcome = metrics.Phase(b[1]), metrics.Outcome(b[2])
	s.Proto, s.Rounds, s.Group = b[3], b[4], b[5]
	s.Intended, s.Release, s.Start = span(b[6:]), span(b[14:]), span(b[22:])
	s.FirstByte, s.End = span(b[30:]), span(b[38:])
	s.Iteration, s.Session = le.Uint64(b[46:]), le.Uint32(b[54:])
	s.Code = int32(le.Uint32(b[58:])) //nolint:gosec // the bits are what is wanted
	s.BytesOut, s.BytesIn, s.ChecksFailed = le.Uint32(b[62:]), le.Uint32(b[66:]), le.Uint32(b[70:])
	s.Step, s.Seq, s.HTTPStatus = le.Uint16(b[74:]), le.Uint16(b[76:]), le.Uint16(b[78:])
	s.Trial, s.Notifications, s.Progress = le.Uint16(b[80:]), le.Uint16(b[82:]), le.Uint16(b[84:])
	s.HasConnect = flags&flagHasConnect != 0
	if flags&flagExtra != 0 {
		s.Extra = d.extra()
	}
	if d.err == nil && !fits(s, cat) {
		d.fail()
	}
}

func span(b []byte) time.Duration {
	return time.Duration(binary.LittleEndian.Uint64(b)) //nolint:gosec // the bits are what is wanted
}

// fits reports whether a row can be made of s.
func fits(s *metrics.Sample, cat *metrics.Catalog) bool {
	if s.Phase > metrics.PhaseSetup || int(s.Proto) >= max(len(cat.Protocols), 1) {
		return false
	}
	switch s.Kind {
	case metrics.KindStep:
		return int(s.Outcome) < metrics.NumOutcomes && int(s.Step) < len(cat.Steps) &&
			int(s.Group) < len(cat.Groups) && int(s.Proto) < len(cat.Protocols)
	case metrics.KindIteration:
		return s.IterOutcome() < metrics.NumIterationOutcomes && int(s.Group) < len(cat.Groups) &&
			(s.Step == metrics.NoStep || int(s.Step) < len(cat.Steps))
	case metrics.KindSession, metrics.KindConnect:
		return int(s.Outcome) < metrics.NumOutcomes
	}
	return false
}

func (d *decoder) extra() *metrics.Extra {
	flags := d.byte()
	x := &metrics.Extra{
		Connect: d.duration(), Retries: uint16(d.uvarint()), TaskPolls: uint16(d.uvarint()), //nolint:gosec // written from a uint16
		TraceID: d.text(), Message: d.text(),
	}
	if flags&flagTags != 0 {
		n := d.count()
		x.Tags = make(map[string]string, n)
		for range n {
			key := d.text()
			x.Tags[key] = d.text()
		}
	}
	if flags&flagProgress != 0 {
		x.HasProgress, x.FirstProgress, x.LastProgress = true, d.duration(), d.duration()
		x.Gaps = d.durations()
	}
	if flags&flagCancelStop != 0 {
		x.HasCancelStop, x.CancelStop = true, d.duration()
	}
	if flags&flagRounds != 0 {
		x.Rounds = d.durations()
	}
	if flags&flagCache != 0 {
		x.HasCache, x.CacheTTL, x.CacheScope = true, d.varint(), d.text()
	}
	if flags&flagSession == 0 {
		return x
	}
	si := &metrics.SessionInfo{
		Server: d.text(), Transport: d.text(), Requested: d.text(), Negotiated: d.text(), Era: d.text(), EndReason: d.text(),
		Spawn: d.duration(), TCP: d.duration(), TLS: d.duration(), Handshake: d.duration(), Ended: d.duration(),
		Requests: d.varint(),
	}
	if flags&flagExitCode != 0 {
		code := int32(d.varint()) //nolint:gosec // written from an int32
		si.ExitCode = &code
	}
	x.Session = si
	return x
}

// records is what the decoder of a frame calls for each record. The samples
// and rows are valid only during the call.
type records interface {
	meta(m *journalMeta) error
	sample(s *metrics.Sample) error
	interval(v *metrics.Interval) error
	loadRow(v *metrics.LoadRow) error
}

// decodeFrame calls to for each record of a frame. cat is that of the last
// metadata before the frame.
func decodeFrame(f frame, cat *metrics.Catalog, to records) error {
	d := decoder{rest: f.payload}
	var s metrics.Sample
	for n := range f.count {
		kind := d.byte()
		var err error
		if sample := kind - byte(recordSample); kind >= byte(recordSample) && sample <= byte(metrics.KindSession) {
			if d.sample(&s, metrics.Kind(sample), cat); d.err == nil {
				err = to.sample(&s)
			}
		} else {
			cat, err = d.other(recordKind(kind), cat, to)
		}
		if err != nil {
			return err
		}
		if d.err != nil {
			return fmt.Errorf("record %d of %d in a frame: %w", n+1, f.count, d.err)
		}
	}
	if len(d.rest) > 0 {
		return fmt.Errorf("%d bytes after the %d records of a frame: %w", len(d.rest), f.count, errRecord)
	}
	return nil
}

// other decodes a record that is no sample. It returns the catalog for the
// records after it.
func (d *decoder) other(kind recordKind, cat *metrics.Catalog, to records) (*metrics.Catalog, error) {
	switch kind {
	case recordMeta:
		m, err := d.meta()
		if err != nil {
			return cat, err
		}
		return m.Catalog, to.meta(m)
	case recordInterval:
		var v metrics.Interval
		if d.interval(&v, cat); d.err == nil {
			return cat, to.interval(&v)
		}
	case recordLoad:
		var v metrics.LoadRow
		if d.load(&v, cat); d.err == nil {
			return cat, to.loadRow(&v)
		}
	case recordSample, recordMark: // the samples are the caller's
		d.fail()
	default:
		d.fail()
	}
	return cat, nil
}
