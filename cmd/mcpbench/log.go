package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger returns the logger of the program: warnings and worse, with
// verbose everything, with quiet only errors.
func newLogger(w io.Writer, format string, verbose, quiet bool) *zap.Logger {
	level := zapcore.InfoLevel
	switch {
	case verbose:
		level = zapcore.DebugLevel
	case quiet:
		level = zapcore.ErrorLevel
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.RFC3339TimeEncoder
	if format == "json" {
		return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(w), level))
	}
	config.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	config.EncodeLevel = zapcore.CapitalLevelEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.AddSync(w), level))
}
