package driver

import (
	"encoding/json"
	"errors"
	"strings"

	"mcpbench/mcp"
)

// maxMessage is the length of the error_message column in bytes.
const maxMessage = 200

// message returns the text of err for the error_message column: what the peer
// or the system said, with digits and ids masked so that like errors are equal,
// cut to 200 bytes.
func message(err error) string {
	if e, ok := errors.AsType[*mcp.RPCError](err); ok {
		return mask(e.Message)
	}
	if e, ok := errors.AsType[*mcp.HTTPError](err); ok && e.Body != "" {
		return mask(e.Body)
	}
	if e, ok := errors.AsType[*mcp.ExitError](err); ok { // the code is ours, the rest the server's
		quoted := *e
		quoted.Stderr = mask(e.Stderr)
		return cut(quoted.Error())
	}
	if e, ok := errors.AsType[*mcp.LimitError](err); ok {
		return cut(e.Error())
	}
	return mask(err.Error())
}

// toolMessage returns the text of a result with isError: its first text content.
func toolMessage(result json.RawMessage) string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil {
		return ""
	}
	for _, c := range r.Content {
		if c.Text != "" {
			return mask(c.Text)
		}
	}
	return ""
}

// own returns the text of an error of the scenario or its files: its numbers are lines
// and limits, which whoever mends it must see.
func own(err error) string { return cut(strings.ToValidUTF8(err.Error(), "�")) }

// mask replaces each number but protocol versions, dotted numbers such as addresses and versions
// whole, and each word of eight and more hexadecimal digits and dashes that
// holds a digit (ids, UUIDs), by #.
func mask(s string) string {
	s = strings.ToValidUTF8(s, "�")
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < maxMessage; {
		if v := versionAt(s[i:]); v != "" {
			b.WriteString(v)
			i += len(v)
			continue
		}
		if n := idLength(s[i:]); n > 0 && (i == 0 || !isWordByte(s[i-1])) {
			b.WriteByte('#')
			i += n
			continue
		}
		if n := digits(s[i:]); n > 0 {
			b.WriteByte('#')
			i += n
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return cut(b.String())
}

// versionAt returns the protocol version that s begins with, or "": which
// versions a server offers is what such a message is about.
func versionAt(s string) string {
	for _, v := range mcp.Versions() {
		if strings.HasPrefix(s, string(v)) && (len(s) == len(v) || !isWordByte(s[len(v)])) {
			return string(v)
		}
	}
	return ""
}

func idLength(s string) int {
	n, hasDigit := 0, false
	for n < len(s) && (isHex(s[n]) || s[n] == '-') {
		hasDigit = hasDigit || isDigit(s[n])
		n++
	}
	if n < 8 || !hasDigit || (n < len(s) && isWordByte(s[n])) {
		return 0
	}
	return n
}

// digits returns the length of the number, address or version that s begins
// with: digits, and single dots and colons between digits.
func digits(s string) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || n > 0 && (s[n] == '.' || s[n] == ':') && n+1 < len(s) && isDigit(s[n+1])) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
func isWordByte(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= 0x80
}

// cut shortens s to the length of a message without splitting a character.
func cut(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "")
}
