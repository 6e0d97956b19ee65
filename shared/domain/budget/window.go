package budget

import "time"

// Period is the length of a budget's windows, which follow the UTC calendar.
type Period string

const (
	Day   Period = "day"
	Month Period = "month"
)

func (p Period) Valid() bool { return p == Day || p == Month }

func (p Period) WindowOf(t time.Time) Window {
	if p == Month {
		return Window(t.UTC().Format(monthForm))
	}
	return Window(t.UTC().Format(time.DateOnly))
}

// Window is a UTC day in the format 2006-01-02, or a month in the format 2006-01.
type Window string

const monthForm = "2006-01"

// Ends returns the start of the next window, or the zero time for an invalid window.
func (w Window) Ends() time.Time {
	if begins, err := time.Parse(monthForm, string(w)); err == nil {
		return begins.AddDate(0, 1, 0)
	}
	begins, err := time.Parse(time.DateOnly, string(w))
	if err != nil {
		return time.Time{}
	}
	return begins.AddDate(0, 0, 1)
}
