package records_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cutroom/shared/app/records"
	"cutroom/shared/domain/integrity"
)

func TestUnknownKind(t *testing.T) {
	_, err := records.Open(t.Context(), "paper", t.TempDir(), records.Options{Now: time.Now})
	if err == nil || err.Error() != `CUTROOM_RECORDS: "paper" is not `+strings.Join(records.Kinds(), " or ") {
		t.Errorf("it was opened, or refused with %v", err)
	}
}

// A store that leaves one of the interfaces out would be noticed by a nil pointer
// in a running server.
func TestEveryKindFillsInEveryStore(t *testing.T) {
	for _, kind := range append(records.Kinds(), "") {
		t.Run("kind="+kind, func(t *testing.T) {
			folder := t.TempDir()
			database, err := records.Find(kind, folder)
			if err != nil {
				t.Fatal(err)
			}
			if err := database.Present(); !errors.Is(err, integrity.ErrNone) {
				t.Errorf("before it is made: %v", err)
			}
			if database.Name() == "" || database.Backup() == "" {
				t.Errorf("messages call it %q and its backup %q", database.Name(), database.Backup())
			}
			kept, err := records.Open(t.Context(), kind, folder, records.Options{Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			fields := reflect.ValueOf(*kept)
			for i := range fields.NumField() {
				if fields.Field(i).IsNil() {
					t.Errorf("%s is nil", fields.Type().Field(i).Name)
				}
			}
			mark, err := kept.Mark(t.Context())
			if err := errors.Join(err, kept.Close()); err != nil {
				t.Fatal(err)
			}
			found, err := database.Inspect(t.Context(), time.Minute)
			if err != nil || !found.Whole || found.Mark != mark {
				t.Errorf("it has %+v, %v; want all checked and the mark %+v", found, err, mark)
			}
			copied := filepath.Join(t.TempDir(), "copy")
			if err := database.Snapshot(t.Context(), copied); err != nil {
				t.Error(err)
			}
			if kept, err := database.SetAside(time.Now()); err != nil || len(kept) == 0 {
				t.Errorf("it was set aside as %v, %v", kept, err)
			}
			if err := database.Present(); !errors.Is(err, integrity.ErrNone) {
				t.Errorf("after it was set aside: %v", err)
			}
			for _, want := range []bool{true, false} {
				snapshot, err := os.Open(copied)
				if err != nil {
					t.Fatal(err)
				}
				err = database.Place(t.Context(), snapshot)
				if placed := err == nil; placed != want {
					t.Errorf("a snapshot was placed: %t, %v; want %t", placed, err, want)
				}
				snapshot.Close()
			}
			found, err = database.Inspect(t.Context(), time.Minute)
			if err != nil || found.Mark != mark {
				t.Errorf("the placed one has %+v, %v; want the mark %+v", found, err, mark)
			}
		})
	}
}
