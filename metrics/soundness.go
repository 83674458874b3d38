package metrics

import (
	"fmt"
	"time"
)

// Limits of the p99 lateness: the greater of a floor, below which a late pacer
// does not matter, and a share of the median service time. The latency would not do:
// arrivals that wait raise it, so that a generator that is too slow would excuse itself.
const (
	doubtfulLateness = 2 * time.Millisecond
	unsoundLateness  = 10 * time.Millisecond
	doubtfulShare    = 0.10
	unsoundShare     = 0.50
	// maxThrottledShare is the share of seconds in which the cgroup may have been throttled.
	maxThrottledShare = 0.05
)

// Soundness verdicts.
const (
	Sound    = "sound"
	Doubtful = "doubtful"
	Unsound  = "unsound"
)

// NoteClosed is the note of a run all of whose load is closed.
const NoteClosed = "all load is closed: latency is service time, and queueing cannot show"

// SoundnessFacts is what the soundness of a run depends on. The CPU that the
// load generator used is not among them.
type SoundnessFacts struct {
	LatenessP99    time.Duration // of arrivals of open loads; 0 when there are none
	ServiceP50     time.Duration // of the requests of open loads; 0 when none was timed
	SlabWaits      int64         // times that a worker waited for a free slab
	ClientErrors   int64         // outcomes client_error
	ThrottledShare float64       // share of the seconds with cgroup throttling, 0 to 1
	Own            OwnUse        // names the limit that ClientErrors ran into
	// CutOff says that the run did not come to its end: what it was waiting for
	// then is missing in all figures. Interrupted is the number of such iterations.
	CutOff      bool
	Interrupted int64
}

// Judge returns sound, doubtful or unsound, and a sentence for each reason.
func (f SoundnessFacts) Judge() (verdict string, reasons []string) {
	verdict, reasons = Sound, []string{}
	unsound := max(unsoundLateness, time.Duration(unsoundShare*float64(f.ServiceP50)))
	doubtful := max(doubtfulLateness, time.Duration(doubtfulShare*float64(f.ServiceP50)))
	switch late := f.LatenessP99; {
	case late > unsound:
		verdict = Unsound
		reasons = append(reasons, fmt.Sprintf("arrivals were released late: p99 %s, more than %s", short(late), short(unsound)))
	case late > doubtful:
		verdict = Doubtful
		reasons = append(reasons, fmt.Sprintf("arrivals were released late: p99 %s, more than %s", short(late), short(doubtful)))
	}
	if f.CutOff {
		verdict = Unsound
		reasons = append(reasons, fmt.Sprintf("the run was cut off: %s due or under way without a known end", iterationCount(f.Interrupted)))
	}
	if n := f.SlabWaits; n > 0 {
		verdict = Unsound
		reasons = append(reasons, fmt.Sprintf("recording could not keep up: work waited for it %s", times(n)))
	}
	if f.ThrottledShare > maxThrottledShare {
		verdict = Unsound
		reasons = append(reasons, fmt.Sprintf("the CPU limit of this machine's control group throttled us in %.3g%% of the seconds", 100*f.ThrottledShare))
	}
	if n := f.ClientErrors; n > 0 {
		verdict = Unsound
		reason := fmt.Sprintf("requests or dials failed by our own fault (client_error) %s", times(n))
		if limit := f.Own.scarce(); limit != "" {
			reason += "; " + limit
		}
		reasons = append(reasons, reason)
	}
	return verdict, reasons
}

func iterationCount(n int64) string {
	if n == 1 {
		return "1 iteration was"
	}
	return fmt.Sprintf("%d iterations were", n)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// short prints a duration with three significant digits or so.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
