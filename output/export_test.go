package output

import "encoding/binary"

// SegmentFile is what a segment needs of a file.
type SegmentFile = segmentFile

// WithFiles makes the journal write to what wrap returns for each file.
func WithFiles(c ParquetConfig, wrap func(path string, file SegmentFile) SegmentFile) ParquetConfig {
	c.create = func(path string) (segmentFile, error) {
		file, err := createSegment(path)
		if err != nil {
			return nil, err
		}
		return wrap(path, file), nil
	}
	return c
}

// WithSteps calls step before each step of the compaction.
func WithSteps(c ParquetConfig, step func(string) error) ParquetConfig {
	c.step = step
	return c
}

// RecoverWithSteps calls step before each step of a recovery.
func RecoverWithSteps(dir string, step func(string) error) (RecoverReport, error) {
	return recoverSteps(dir, step)
}

// MetaFrame is a frame of one record of metadata.
func MetaFrame(text string) []byte {
	var b frameBuilder
	b.begin()
	b.buf = append(b.buf, byte(recordMeta))
	b.buf = append(binary.AppendUvarint(b.buf, uint64(len(text))), text...)
	b.seal()
	return b.buf
}

// Unlock gives a folder free as the end of the process does.
func Unlock(f *Folder) error { return f.unlock() }
