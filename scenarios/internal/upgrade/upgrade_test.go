package upgrade_test

import (
	"errors"
	"fmt"
	"testing"

	"mcpbench/scenarios/internal/upgrade"
)

func TestStepsRunInOrderFromTheVersionOfTheFile(t *testing.T) {
	add := func(text string) upgrade.Step {
		return func(data []byte) ([]byte, error) { return append(data, text...), nil }
	}
	steps := []upgrade.Step{add("b"), add("c"), add("d")}
	if n := upgrade.Newest(steps); n != 4 {
		t.Fatalf("the newest version is %d, want 4", n)
	}
	for from, want := range map[int]string{1: "abcd", 2: "acd", 3: "ad", 4: "a"} {
		if got, err := upgrade.Run(steps, from, []byte("a")); err != nil || string(got) != want {
			t.Errorf("from %d: %q, %v, want %q", from, got, err, want)
		}
	}
}

func TestAFailedStepIsNamed(t *testing.T) {
	broken := errors.New("broken")
	fine := func(data []byte) ([]byte, error) { return data, nil }
	_, err := upgrade.Run([]upgrade.Step{fine, func([]byte) ([]byte, error) { return nil, broken }}, 1, nil)
	if want := "from version 2 to 3: broken"; !errors.Is(err, broken) || fmt.Sprint(err) != want {
		t.Errorf("%v, want %q", err, want)
	}
}
