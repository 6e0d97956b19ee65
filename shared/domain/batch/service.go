package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// The bounds of metadata.
const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
	// maxMetadataBytes is what the longest keys and values take in ASCII.
	maxMetadataBytes = maxMetadata * (maxMetadataKey + maxMetadataValue)
)

// Config is what a Service is made of. All fields are required.
type Config struct {
	Store Store
	// Files returns the files that batches are made from.
	Files interface {
		Get(ctx context.Context, account, id string) (file.File, error)
	}
	Blobs interface {
		Copy(ctx context.Context, from, to string) error
		Delete(ctx context.Context, name string) error
	}
	Storage Storage
	// IDs draws ids; those of batches have the same form as those of files.
	IDs *file.IDs
	Now func() time.Time
	// Wake tells who works on batches that one was made or cancelled. They find it by
	// themselves after a while if they are not told.
	Wake func(ctx context.Context, b Batch)
}

// Service makes, lists and cancels batches for the accounts that they belong to.
type Service struct{ config Config }

// NewService returns a service.
func NewService(c Config) *Service { return &Service{c} }

// Request asks for a batch. The caller has checked the endpoint.
type Request struct {
	Account, Key, Endpoint, Input string
	Metadata                      map[string]string
	// OutputLifetime is how long the results are kept; 0 means FileLifetime.
	OutputLifetime time.Duration
	// StoredBytes is how many bytes the account may store; 0 means no limit.
	StoredBytes int64
}

// createTime is the time limit for recording a batch. It does not depend on the request,
// whose end would leave open whether the batch exists.
const createTime = 30 * time.Second

// Create makes a batch from a file of the account. The batch has a copy of the file, which
// counts towards the account's storage until the batch has ended: the file may be deleted.
//
// Errors: fault.NotFound if there is no such file; fault.Invalid if it is not for
// batches or too large, or the metadata are; fault.Limited if the account has MaxOpen or
// its storage has no space for the copy.
func (s *Service) Create(ctx context.Context, r Request) (Batch, error) {
	if err := checkMetadata(r.Metadata); err != nil {
		return Batch{}, err
	}
	input, err := s.config.Files.Get(ctx, r.Account, r.Input)
	switch {
	case err != nil:
		return Batch{}, err
	case input.Purpose != InputPurpose:
		return Batch{}, fault.New(fault.Invalid, "The file %s was not uploaded with the purpose %q.", r.Input, InputPurpose)
	case input.Size > MaxInput:
		return Batch{}, fault.New(fault.Invalid, "The file %s has more than %d bytes.", r.Input, MaxInput)
	}
	drawn, created, err := s.config.IDs.New()
	if err != nil {
		return Batch{}, err
	}
	id := "batch_" + strings.TrimPrefix(drawn, "file_")
	created = created.Truncate(time.Millisecond)
	b := Batch{
		ID: id, Account: r.Account, Key: r.Key, Endpoint: r.Endpoint, Input: r.Input, InputBlob: inputBlob(id),
		Metadata: maps.Clone(r.Metadata), OutputLifetime: r.OutputLifetime, Status: Validating,
		CreatedAt: created, ExpiresAt: created.Add(Window),
	}
	if b.OutputLifetime == 0 {
		b.OutputLifetime = FileLifetime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	if err := s.record(ctx, b, input, r.StoredBytes); err != nil {
		return Batch{}, err
	}
	s.config.Wake(ctx, b)
	return b, nil
}

// record reserves storage for a batch's copy of its input, makes the copy, and records the
// batch. If the batch certainly does not exist after an error, nothing of it is left.
func (s *Service) record(ctx context.Context, b Batch, input file.File, limit int64) error {
	_, err := s.config.Storage.Hold(ctx, Reservation(b), input.Size, limit)
	if fault.Is(err, fault.Limited) {
		return file.StorageFull(limit)
	}
	if err != nil {
		return fmt.Errorf("batch: reserve storage for the input: %w", err)
	}
	copied := s.config.Blobs.Copy(ctx, input.Blob, b.InputBlob)
	if copied == nil {
		err = s.config.Store.Create(ctx, b, MaxOpen, MaxKept)
	}
	switch {
	case fault.Is(copied, fault.NotFound):
		err = file.ErrNotFound // it has just been deleted
	case copied != nil:
		err = fmt.Errorf("batch: copy the input: %w", copied)
	case fault.Is(err, fault.Limited):
		err = tooManyOpen()
	case !fault.Is(err, fault.StorageFull):
		return err // after an unknown error the batch may exist
	}
	deleted := s.config.Blobs.Delete(ctx, b.InputBlob)
	if deleted == nil {
		deleted = s.config.Storage.Release(ctx, b)
	}
	return errors.Join(err, deleted)
}

func tooManyOpen() error {
	err := fault.New(fault.Limited, "The account has %d batches that have not ended, which is its limit.", MaxOpen)
	err.RetryAfter = time.Minute
	return err
}

func checkMetadata(metadata map[string]string) error {
	if len(metadata) > maxMetadata {
		return fault.New(fault.Invalid, "metadata has more than %d entries.", maxMetadata)
	}
	size := 0
	for key, value := range metadata {
		size += len(key) + len(value)
		if utf8.RuneCountInString(key) > maxMetadataKey || utf8.RuneCountInString(value) > maxMetadataValue {
			return fault.New(fault.Invalid, "metadata has keys of at most %d characters and values of at most %d.",
				maxMetadataKey, maxMetadataValue)
		}
	}
	if size > maxMetadataBytes {
		return fault.New(fault.Invalid, "metadata has at most %d bytes of keys and values.", maxMetadataBytes)
	}
	return nil
}

// Get returns a batch of an account.
//
// Errors: fault.NotFound.
func (s *Service) Get(ctx context.Context, account, id string) (Batch, error) {
	return s.config.Store.Get(ctx, account, id)
}

// List returns batches of an account, newest first, after the one with the id, and
// whether there are more.
func (s *Service) List(ctx context.Context, account, after string, limit int) (page []Batch, more bool, err error) {
	page, err = s.config.Store.List(ctx, account, after, limit+1)
	if len(page) > limit {
		return page[:limit], true, err
	}
	return page, false, err
}

// Cancel has a batch end early. Calls that a model server has go on for a while; what
// was answered is kept. To cancel a batch again changes nothing.
//
// Errors: fault.NotFound; fault.Conflict if the batch has ended, or is about to.
func (s *Service) Cancel(ctx context.Context, account, id string) (Batch, error) {
	for {
		b, err := s.config.Store.Get(ctx, account, id)
		if err != nil || b.Status == Cancelling || b.Status == Cancelled {
			return b, err
		}
		if b.Status != Validating && b.Status != InProgress {
			return b, fault.New(fault.Conflict, "A batch whose status is %s cannot be cancelled.", b.Status)
		}
		from := b.Status
		b.Status, b.CancellingAt = Cancelling, s.config.Now().UTC().Truncate(time.Millisecond)
		err = s.config.Store.Change(ctx, from, b)
		if fault.Is(err, fault.Conflict) {
			continue // it went on meanwhile; a status never comes back
		}
		if err == nil {
			s.config.Wake(ctx, b)
		}
		return b, err
	}
}
