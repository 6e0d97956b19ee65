package boottime_test

import (
	"os/exec"
	"testing"

	"cutroom/shared/platform/boottime"
)

func TestClocksAdvanceTogether(t *testing.T) {
	first, err := boottime.Open()
	if err != nil {
		t.Fatal(err)
	}
	second, err := boottime.Open()
	if err != nil {
		t.Fatal(err)
	}
	if first.Boot() == "" || first.Boot() != second.Boot() {
		t.Errorf("the boots %q and %q differ", first.Boot(), second.Boot())
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
		t.Errorf("the clock stopped at %s", now)
	}
}
