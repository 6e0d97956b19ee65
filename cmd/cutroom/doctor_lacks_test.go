package main

import (
	"testing"

	"cutroom/shared/engine"
)

func TestDoctorListsMissingItemsOnce(t *testing.T) {
	got := lackList(engine.Inspection{Server: "http://a", Lacks: map[string][]string{
		"t2v": {"models/vae/v: fetch it"}, "i2v": {"models/loras/l: fetch it", "models/vae/v: fetch it"},
	}})
	want := "http://a lacks:\nmodels/loras/l: fetch it (for i2v)\nmodels/vae/v: fetch it (for i2v, t2v)"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
