package output

// UseColor decides whether output to a stream is coloured. The flag --no-color
// is stronger than the environment; NO_COLOR (https://no-color.org: any value
// but an empty one) is stronger than CLICOLOR_FORCE (https://bixense.com/clicolors:
// any value but 0), which colours also what is no terminal. A terminal that
// says TERM=dumb gets no colours.
func UseColor(isTTY, noColorFlag bool, env func(string) string) bool {
	if noColorFlag || env("NO_COLOR") != "" {
		return false
	}
	if force := env("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return isTTY && env("TERM") != "dumb"
}

// paint puts text in colour, or not: the zero value leaves it as it is.
type paint struct{ on bool }

func (p paint) sgr(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) good(s string) string  { return p.sgr("32", s) }
func (p paint) bad(s string) string   { return p.sgr("31", s) }
func (p paint) warn(s string) string  { return p.sgr("33", s) }
func (p paint) faint(s string) string { return p.sgr("2", s) }
func (p paint) bold(s string) string  { return p.sgr("1", s) }

// mark returns ✓ or ✗.
func (p paint) mark(ok bool) string {
	if ok {
		return p.good("✓")
	}
	return p.bad("✗")
}
