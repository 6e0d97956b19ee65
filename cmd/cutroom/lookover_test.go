package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/app/records"
	"cutroom/shared/domain/integrity"
)

// checked is a database whose check ends so.
type checked struct {
	records.Database
	err error
}

func (checked) Name() string { return "the database" }

func (checked) Backup() string { return "all of it" }

func (c checked) Check(context.Context) ([]string, error) { return []string{"busy"}, c.err }

// Blobs that no record knows are set aside also where parts of the database cannot be read to
// check them, and not where it is damaged.
func TestLookOverAfterACheckThatFailed(t *testing.T) {
	for name, err := range map[string]error{"unreadable": errors.New("the disk has failed"), "damaged": integrity.ErrDamaged} {
		t.Run(name, func(t *testing.T) {
			machine, machineErr := clocksOfMachine()
			if machineErr != nil {
				t.Fatal(machineErr)
			}
			s := newIdle(t.Context(), t, machine, t.Output())
			defer s.close()
			s.damagedFile = filepath.Join(t.TempDir(), damagedName)
			const unknown = "files/file_00000000000000000000000001"
			if _, err := s.blobs.Put(t.Context(), unknown, strings.NewReader("unknown")); err != nil {
				t.Fatal(err)
			}
			s.blobs.ForgetNewcomers()
			s.unchecked = checked{nil, err}
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			s.lookOver(ctx, stop)
			_, left := s.blobs.Head(t.Context(), unknown)
			damaged := errors.Is(err, integrity.ErrDamaged)
			_, noted := os.Stat(s.damagedFile)
			if stopped := context.Cause(ctx) != nil; stopped != damaged || (left == nil) != damaged || (noted == nil) != damaged {
				t.Errorf("stopped: %t, the blob: %v, noted: %v", stopped, left, noted)
			}
		})
	}
}
