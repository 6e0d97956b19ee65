package sim

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
)

// The load of files and lists, for each job.
const (
	// uploadsEach are uploads of files, half of them announced and by signed URL, and
	// referring is the part of videos whose input is a file that their account has stored.
	uploadsEach, referring = 0.2, 0.3
	// fileListsEach and jobListsEach are reads of a first page.
	fileListsEach, jobListsEach = 0.05, 0.1
	page                        = 20
	// keptFiles is how many of its latest files an account refers to.
	keptFiles = 50
	// signedUpload is how long the bytes of a signed upload take until they have arrived.
	signedUpload = 3 * time.Second
)

// newFiles returns the stored files of one instance.
func (w *World) newFiles(store *dynamo.Files) *file.Service {
	return file.NewService(file.Config{
		Store: store, IDs: file.NewIDs(w.clock.Now, randomBytes{w.random}), SpreadBlobs: true,
		Cursors: file.NewCursors(simulatedSecret()), Now: w.clock.Now,
	})
}

func simulatedSecret() []byte { return []byte("a secret of the simulation only.") }

// upload is a client that stores a file.
func (w *World) upload() {
	account := w.chooser.choose(w.random)
	signed := w.random.IntN(2) == 0
	w.files++
	f := file.File{
		Account: account.Name, Key: account.Name, Filename: "clip.mp4", MIME: "video/mp4", Size: 2_345_678,
		MD5: fmt.Sprintf("%032x", w.files), Lifetime: file.DefaultLifetime,
	}
	w.request()
	took := uploadTime
	if signed {
		took = announceTime
	}
	i := w.serve("files", took)
	ctx := context.Background()
	who, err := i.authenticate(ctx, account)
	if err != nil {
		w.count.files[refusalOf(err)]++
		return
	}
	if !signed {
		if f.Blob, err = i.files.NewBlob(); err == nil {
			w.count.puts.add(w.clock.Now(), f.Blob+"/", 1)
			f, err = i.files.Create(ctx, f, who.Tier.StoredBytes)
		}
		w.stored(account, f, err)
		return
	}
	f, err = i.files.CreatePending(ctx, f, who.Tier.StoredBytes, who.Tier.Uploads)
	if err != nil {
		w.count.files[refusalOf(err)]++
		return
	}
	w.clock.After(between(w.random, 0, 2*signedUpload), func() {
		w.count.puts.add(w.clock.Now(), f.Blob+"/", 1)
		arrived := w.serve("arrived", arrivedTime)
		final, err := arrived.files.Finalize(ctx, f, f.MIME)
		w.stored(account, final, err)
	})
}

// stored notes what became of an upload.
func (w *World) stored(account *Account, f file.File, err error) {
	if err != nil {
		w.count.files[refusalOf(err)]++
		return
	}
	w.count.uploads++
	if len(account.files) >= keptFiles {
		account.files = account.files[1:]
	}
	account.files = append(account.files, f.ID)
}

// listFiles and listJobs are clients that read a first page.
func (w *World) listFiles() {
	w.list("files", func(ctx context.Context, i *instance, account string) error {
		_, _, err := i.files.List(ctx, account, "", page)
		return err
	})
}

func (w *World) listJobs() {
	w.list("jobs", func(ctx context.Context, i *instance, account string) error {
		_, _, err := i.jobs.List(ctx, account, job.Filter{}, "", page)
		return err
	})
}

func (w *World) list(function string, read func(context.Context, *instance, string) error) {
	account := w.chooser.choose(w.random)
	w.request()
	i := w.serve(function, statusTime)
	_, err := i.authenticate(context.Background(), account)
	if err == nil {
		err = read(context.Background(), i, account.Name)
	}
	if err != nil {
		w.count.lists[refusalOf(err)]++
		return
	}
	w.count.listed++
}
