package feed

import (
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// valueOf returns how values of a column are made, or nil if it is no plain one.
// Times are text as in RFC 3339 (dates: 2006-01-02), decimals are numbers.
func valueOf(c *parquet.Column) func(parquet.Value) any {
	if !c.Leaf() || c.Repeated() {
		return nil
	}
	kind := c.Type().Kind()
	if logical := c.Type().LogicalType(); logical != nil && logical.Value != nil {
		return logicalValue(c, logical.Value)
	}
	switch kind {
	case parquet.Boolean:
		return func(v parquet.Value) any { return v.Boolean() }
	case parquet.Int32:
		return func(v parquet.Value) any { return int(v.Int32()) }
	case parquet.Int64:
		return func(v parquet.Value) any { return int(v.Int64()) }
	case parquet.Float:
		// The shortest text that means this float32 is what was written.
		return func(v parquet.Value) any { return widened(v.Float()) }
	case parquet.Double:
		return func(v parquet.Value) any { return v.Double() }
	case parquet.ByteArray: // many writers do not mark text as such
		return func(v parquet.Value) any { return string(v.ByteArray()) }
	case parquet.Int96:
		return func(v parquet.Value) any {
			i := v.Int96()
			// Nanoseconds of the day, and the Julian day; 2440588 is 1970-01-01.
			nanos := int64(uint64(i[1])<<32 | uint64(i[0])) //nolint:gosec // of one day
			return time.Unix((int64(i[2])-2440588)*86400, nanos).UTC().Format(time.RFC3339Nano)
		}
	case parquet.FixedLenByteArray:
	}
	return nil
}

// widened is the float64 that is written like v.
func widened(v float32) float64 {
	f, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	if err != nil {
		return float64(v)
	}
	return f
}

// logicalValue is for columns that say what their bytes mean. Types:
// github.com/apache/parquet-format, LogicalTypes.md.
func logicalValue(c *parquet.Column, logical format.LogicalTypeValue) func(parquet.Value) any {
	switch l := logical.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return func(v parquet.Value) any { return string(v.ByteArray()) }
	case *format.UUIDType:
		return func(v parquet.Value) any { return uuid(v.ByteArray()) }
	case *format.IntType:
		return integerValue(c.Type().Kind(), l.IsSigned)
	case *format.DateType:
		return func(v parquet.Value) any {
			return time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly)
		}
	case *format.TimestampType:
		if l.Unit.Value == nil {
			return nil
		}
		layout := time.RFC3339Nano
		if !l.IsAdjustedToUTC { // of no zone
			layout = "2006-01-02T15:04:05.999999999"
		}
		unit := int64(l.Unit.Value.Duration())
		return func(v parquet.Value) any {
			n, perSecond := v.Int64(), int64(time.Second)/unit
			return time.Unix(n/perSecond, n%perSecond*unit).UTC().Format(layout)
		}
	case *format.DecimalType:
		return decimalValue(c.Type().Kind(), l.Scale)
	}
	return nil
}

func integerValue(kind parquet.Kind, signed bool) func(parquet.Value) any {
	switch {
	case kind == parquet.Int32 && signed:
		return func(v parquet.Value) any { return int(v.Int32()) }
	case kind == parquet.Int32:
		return func(v parquet.Value) any { return int(v.Uint32()) }
	case signed:
		return func(v parquet.Value) any { return int(v.Int64()) }
	}
	return func(v parquet.Value) any {
		if u := v.Uint64(); u > math.MaxInt {
			return float64(u) // as a number of JSON that is beyond int
		}
		return int(v.Int64())
	}
}

func decimalValue(kind parquet.Kind, scale int32) func(parquet.Value) any {
	number := func(digits string) any {
		f, err := strconv.ParseFloat(digits+"e"+strconv.Itoa(-int(scale)), 64)
		if err != nil {
			return nil // beyond a float64
		}
		return f
	}
	switch kind {
	case parquet.Int32:
		return func(v parquet.Value) any { return number(strconv.FormatInt(int64(v.Int32()), 10)) }
	case parquet.Int64:
		return func(v parquet.Value) any { return number(strconv.FormatInt(v.Int64(), 10)) }
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return func(v parquet.Value) any { // big-endian, two's complement
			b := v.ByteArray()
			n := new(big.Int).SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
			return number(n.String())
		}
	case parquet.Boolean, parquet.Int96, parquet.Float, parquet.Double:
	}
	return nil
}

func uuid(b []byte) string {
	h := hex.EncodeToString(b)
	if len(h) != 32 {
		return h
	}
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
