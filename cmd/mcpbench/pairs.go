package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pairs is the value of a flag that is given again and again as NAME=VALUE. A value
// is taken as it is, whatever is in it.
type pairs map[string]string

// String implements pflag.Value.
func (p *pairs) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(*p)) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + "=" + (*p)[name])
	}
	return b.String()
}

// Set implements pflag.Value.
func (p *pairs) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not written NAME=VALUE", text)
	}
	if *p == nil {
		*p = pairs{}
	}
	(*p)[name] = value
	return nil
}

// Type implements pflag.Value.
func (*pairs) Type() string { return "NAME=VALUE" }
