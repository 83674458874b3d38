package metrics

// Threshold is one parsed pass/fail test on the summary, written
// AGG(METRIC{tag=value,…}) OP VALUE.
type Threshold struct {
	Expr    string // as written
	Default bool   // not named by the user
}

// ParseThreshold parses one threshold expression. A syntax error is a
// *ThresholdError with the offset of the fault; a known aggregate or metric
// that is not delivered yet is a *ThresholdError with NotYet set.
func ParseThreshold(expr string) (Threshold, error) {
	return Threshold{Expr: expr}, nil
}

// ThresholdError says where a threshold expression is wrong.
type ThresholdError struct {
	Expr    string
	Offset  int    // byte offset of the fault in Expr
	Message string // what is wrong and what to write
	NotYet  string // the known name that is not supported yet, or ""
}

func (e *ThresholdError) Error() string { return e.Message }
