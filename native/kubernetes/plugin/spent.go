package plugin

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// spent measures the processor time of calls. After two long calls within ten seconds the engine rests.
type spent struct {
	lastLong time.Time
	restTill time.Time
	// last is the processor time of the last call.
	last time.Duration
}

const (
	longTogether = 10 * time.Second
	restFactor   = 50
)

func (s *spent) isResting(now time.Time) bool { return now.Before(s.restTill) }

// measure runs a call on a locked thread, so that the thread's processor time is the call's.
func (s *spent) measure(limit time.Duration, call func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := processorTime()
	call()
	s.took(time.Now(), processorTime()-start, limit)
}

func (s *spent) took(now time.Time, took, limit time.Duration) {
	s.last = took
	callSeconds.Observe(took.Seconds())
	if took <= limit {
		return
	}
	if now.Sub(s.lastLong) < longTogether {
		s.restTill = now.Add(restFactor * took)
	}
	s.lastLong = now
}

func processorTime() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
