package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"cutroom/shared/app/c2pa/signing"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/platform/sandbox"
	"cutroom/shared/platform/vp8"
)

func checkFFmpeg(ctx context.Context, e examination) []finding {
	catalog, err := e.settings.catalog()
	if err != nil {
		return []finding{{"catalog", failing, err.Error(),
			"Correct the file, or unset CUTROOM_CATALOG to use the built-in catalog."}}
	}
	tools, err := ffmpeg.Find(ctx, catalog.Limits)
	if err != nil {
		return []finding{{"ffmpeg", failing, err.Error(),
			"Add ffmpeg and ffprobe to PATH."}}
	}
	findings := []finding{
		{Check: "ffmpeg", State: fine, Detail: "ffmpeg and ffprobe are installed and have the needed features"},
		{Check: "sandbox", State: fine, Detail: "decoders are sandboxed with " + tools.Sandbox().String()},
	}
	if err := checkHEIC(ctx, e, tools); err != nil {
		findings = append(findings, finding{"heic", warning, err.Error(), "Everything else works without it."})
	} else {
		findings = append(findings, finding{Check: "heic", State: fine, Detail: "HEIC and AVIF pictures are decoded by heif-convert"})
	}
	for _, lack := range tools.Sandbox().Lacks() {
		findings = append(findings, finding{"sandbox", warning, lack,
			"Decoders run with fewer layers of protection. Enable it in the kernel or the container's settings."})
	}
	return findings
}

func checkHEIC(ctx context.Context, e examination, tools *ffmpeg.Tools) (err error) {
	if tools.Folder, err = makeTrialFolder(e.settings.Data); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tools.Folder)) }()
	return tools.CheckHEIC(ctx)
}

func checkLiveVideo(ctx context.Context, _ examination) []finding {
	box, err := sandbox.New(ctx)
	if err != nil {
		return []finding{{"live video", warning, err.Error(), ""}}
	}
	library, err := vp8.Find(ctx, box)
	if err != nil {
		return []finding{{"live video", warning, err.Error(), "Without it live video over WebRTC is off; the rest works."}}
	}
	return []finding{{Check: "live video", State: fine, Detail: "VP8 is decoded and encoded by " + library.String()}}
}

func checkSigning(ctx context.Context, e examination) []finding {
	fail := func(err error) []finding { return []finding{{"signing", failing, err.Error(), ""}} }
	box, err := sandbox.New(ctx)
	if err != nil {
		return fail(err)
	}
	plan, err := signing.Find(ctx, signing.Config{
		Settings: e.settings.signingFlags.settings(), Engine: e.settings.Engine, Sandbox: box, Version: version(),
		Now: time.Now,
	})
	if err != nil {
		return fail(err)
	}
	folder, err := makeTrialFolder(e.settings.Data)
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(folder)
	by, err := plan.Try(ctx, signing.Parts{
		Store: signing.ReadOnly(filepath.Join(e.settings.Data, signerName)), Folder: folder, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler),
	})
	switch {
	case err != nil:
		return fail(err)
	case by == nil:
		return []finding{{Check: "signing", State: fine, Detail: "results are not signed: the engine has no models, or " +
			"CUTROOM_C2PA is off"}}
	}
	found := finding{Check: "signing", State: fine, Detail: fmt.Sprintf("results are signed by %s until %s, with %s",
		by.Name, by.Until.UTC().Format(time.DateOnly), by.Library)}
	if by.Expiring {
		found.State, found.Mend = warning, "Renew the certificate before then, or the server will not start."
	}
	return []finding{found}
}

// makeTrialFolder makes a folder for trials, which the caller must remove. It prefers the server's working folder,
// which may be the only writable folder in a container. Before the first start, it uses the data folder or, if that
// does not exist, the system's temporary folder.
func makeTrialFolder(data string) (string, error) {
	const name = "cutroom-doctor-"
	// The path must be absolute, because the tested programs run in other folders.
	data, err := filepath.Abs(data)
	if err != nil {
		return "", err
	}
	for _, place := range []string{filepath.Join(data, scratchName), data} {
		if folder, err := os.MkdirTemp(place, name); err == nil {
			return folder, nil
		}
	}
	return os.MkdirTemp("", name)
}

const (
	// With less than littleSpace bytes free, a large upload and its result would soon fill the
	// disk. With less than noSpace bytes free, almost nothing can be stored.
	littleSpace, noSpace = 5 << 30, 256 << 20
)

func checkData(_ context.Context, e examination) []finding {
	folder := e.settings.Data
	detail := folder + " is writable"
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		// The server will create the folder, so check the parent.
		detail = folder + " will be created"
		for errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(folder) {
			folder = filepath.Dir(folder)
			_, err = os.Stat(folder)
		}
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return []finding{{"data", failing, fmt.Sprintf("%s is not a folder", folder), "Set CUTROOM_DATA to a folder."}}
	}
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return []finding{{"data", failing, fmt.Sprintf("%s is not writable: %v", folder, err),
			"Make it writable for this user, or set CUTROOM_DATA to another folder."}}
	}
	findings := []finding{{Check: "data", State: fine, Detail: detail}}
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return append(findings, finding{"disk", warning, fmt.Sprintf("the free space is unknown: %v", err), ""})
	}
	free := uint64(disk.Bavail) * uint64(disk.Bsize)
	found := finding{Check: "disk", State: fine, Detail: humanize.IBytes(free) + " are free"}
	if free < littleSpace {
		found.State, found.Mend = warning, "Free some space, or set CUTROOM_DATA to a folder on a larger disk."
	}
	if free < noSpace {
		found.State = failing
	}
	return append(findings, found)
}

// checkRecords works even while a server is running.
func checkRecords(ctx context.Context, e examination) []finding {
	if _, err := os.Stat(e.settings.Data); err != nil {
		return nil // checkData reports the problem
	}
	whole, err := checkStorage(ctx, e.settings.dataFlag, func(int64) time.Duration { return checkTime - time.Second })
	var mismatch *mismatchError
	switch {
	case errors.As(err, &mismatch):
		detail := mismatch.why()
		if mismatch.cause != nil {
			detail = mismatch.cause.Error()
		}
		return []finding{{"database", failing, detail,
			"Restore the newest copy of cutroom.db with its cutroom.db-wal, or run cutroom doctor --repair."}}
	case err != nil:
		return []finding{{"database", failing, err.Error(), ""}}
	case !whole:
		return []finding{{Check: "database", State: fine,
			Detail: "the checked part is sound; the database is too large for a full check, but each backup checks its copy"}}
	}
	return []finding{{Check: "database", State: fine, Detail: "it is sound"}}
}

func checkAddresses(ctx context.Context, e examination) []finding {
	var findings []finding
	for _, address := range []struct{ setting, address string }{
		{"CUTROOM_ADDR", e.settings.Addr}, {"CUTROOM_INFERENCE_ADDR", e.settings.InferenceAddr},
	} {
		found := finding{Check: "address", State: fine, Detail: address.address + " is free"}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.address)
		switch {
		case err == nil:
			listener.Close()
		case errors.Is(err, unix.EADDRINUSE) && healthy(ctx, address.address):
			found.Detail = "a Cutroom server listens at " + address.address
		case errors.Is(err, unix.EADDRINUSE):
			found.State, found.Detail = failing, address.address+" is in use by another program"
			found.Mend = "Stop that program, or set " + address.setting + " to another address."
		default:
			found.State, found.Detail = failing, err.Error()
			found.Mend = "Set " + address.setting + " to an address of this machine, such as 127.0.0.1:8080."
		}
		findings = append(findings, found)
	}
	return findings
}

func healthy(ctx context.Context, address string) bool {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return false
	}
	status, err := probe(ctx, "http://"+reachable(resolved)+"/healthz")
	return err == nil && status == 200
}
