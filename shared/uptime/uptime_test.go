package uptime_test

import (
	"os/exec"
	"testing"

	"cutroom/shared/uptime"
)

func TestTheClockGoesOnAndAllOpenTheSame(t *testing.T) {
	first, err := uptime.Open()
	if err != nil {
		t.Fatal(err)
	}
	second, err := uptime.Open()
	if err != nil {
		t.Fatal(err)
	}
	if first.Boot() == "" || first.Boot() != second.Boot() {
		t.Errorf("the starts %q and %q are not one", first.Boot(), second.Boot())
	}
	last := first.Now()
	for range 1000 {
		now := second.Now()
		if now < last || now <= 0 {
			t.Fatalf("%s after %s", now, last)
		}
		last = now
	}
	if err := exec.Command("sleep", "0.01").Run(); err != nil {
		t.Fatal(err)
	}
	if now := first.Now(); now <= last {
		t.Errorf("the clock stands at %s", now)
	}
}
