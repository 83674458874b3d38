package output

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
