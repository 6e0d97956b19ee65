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

const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
	// maxMetadataBytes is the maximum size of the metadata if all of it is ASCII.
	maxMetadataBytes = maxMetadata * (maxMetadataKey + maxMetadataValue)
)

type Config struct {
	Store Store
	Files interface {
		Get(ctx context.Context, account, id string) (file.File, error)
	}
	Blobs interface {
		Copy(ctx context.Context, from, to string) error
		Delete(ctx context.Context, name string) error
	}
	Storage Storage
	// Batch ids have the same format as file ids.
	IDs *file.IDs
	Now func() time.Time
	// Wake notifies the runners of a new or cancelled batch, which they would otherwise find later.
	Wake func(ctx context.Context, b Batch)
}

type Service struct{ config Config }

func NewService(c Config) *Service { return &Service{c} }

// Request describes a new batch. The caller must have validated the endpoint.
type Request struct {
	Account, Key, Endpoint, Input string
	Metadata                      map[string]string
	OutputLifetime                time.Duration // 0 means FileLifetime
	StoredBytes                   int64         // the account's limit; 0 means no limit
}

// createTime limits how long recording a batch may take. It replaces the request's context, because
// a write that is interrupted may or may not have created the batch.
const createTime = 30 * time.Second

// Create creates a batch from one of the account's files. The batch has its own copy of the file, so the file may
// be deleted. The copy counts toward the account's storage until the batch has ended.
//
// Errors: fault.NotFound if the file does not exist; fault.Invalid if the purpose, size or metadata
// is invalid; fault.Limited if the account has MaxOpen batches or too little storage for the copy.
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
		return Batch{}, fault.New(fault.Invalid, "The file %s is larger than %d bytes.", r.Input, MaxInput)
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

// record reserves storage for the batch's copy of its input, copies the input, and records the
// batch. If an error leaves no record, the copy is deleted.
func (s *Service) record(ctx context.Context, b Batch, input file.File, limit int64) error {
	_, err := s.config.Storage.Hold(ctx, Reservation(b), input.Size, limit)
	if err != nil {
		return fmt.Errorf("batch: reserve storage for the input: %w", err)
	}
	copied := s.config.Blobs.Copy(ctx, input.Blob, b.InputBlob)
	if copied == nil {
		err = s.config.Store.Create(ctx, b, MaxOpen, MaxKept)
	}
	switch {
	case fault.Is(copied, fault.NotFound):
		err = file.ErrNotFound // the file has just been deleted
	case copied != nil:
		err = fmt.Errorf("batch: copy the input: %w", copied)
	case fault.Is(err, fault.Limited):
		err = tooManyOpen()
	case !fault.Is(err, fault.StorageFull):
		return err // the batch may have been recorded
	}
	deleted := s.config.Blobs.Delete(ctx, b.InputBlob)
	if deleted == nil {
		deleted = s.config.Storage.Release(ctx, b)
	}
	return errors.Join(err, deleted)
}

func tooManyOpen() error {
	err := fault.New(fault.Limited, "The account has reached the limit of %d open batches.", MaxOpen)
	err.RetryAfter = time.Minute
	return err
}

func checkMetadata(metadata map[string]string) error {
	if len(metadata) > maxMetadata {
		return fault.New(fault.Invalid, "metadata must not have more than %d entries.", maxMetadata)
	}
	size := 0
	for key, value := range metadata {
		size += len(key) + len(value)
		if utf8.RuneCountInString(key) > maxMetadataKey || utf8.RuneCountInString(value) > maxMetadataValue {
			return fault.New(fault.Invalid, "metadata keys must have at most %d characters and values at most %d.",
				maxMetadataKey, maxMetadataValue)
		}
	}
	if size > maxMetadataBytes {
		return fault.New(fault.Invalid, "metadata keys and values must have at most %d bytes in total.", maxMetadataBytes)
	}
	return nil
}

func (s *Service) Get(ctx context.Context, account, id string) (Batch, error) {
	return s.config.Store.Get(ctx, account, id)
}

// List returns batches, newest first, starting after the given id.
func (s *Service) List(ctx context.Context, account, after string, limit int) (page []Batch, more bool, err error) {
	page, err = s.config.Store.List(ctx, account, after, limit+1)
	if len(page) > limit {
		return page[:limit], true, err
	}
	return page, false, err
}

// Cancel ends a batch early. Calls that have reached a model server may continue briefly, and their
// results are kept. Cancelling a cancelled batch has no effect.
//
// Errors: fault.NotFound; fault.Conflict if the batch has ended or is being finalized.
func (s *Service) Cancel(ctx context.Context, account, id string) (Batch, error) {
	for {
		b, err := s.config.Store.Get(ctx, account, id)
		if err != nil || b.Status == Cancelling || b.Status == Cancelled {
			return b, err
		}
		if b.Status != Validating && b.Status != InProgress {
			return b, fault.New(fault.Conflict, "A batch with the status %s cannot be cancelled.", b.Status)
		}
		from := b.Status
		b.Status, b.CancellingAt = Cancelling, s.config.Now().UTC().Truncate(time.Millisecond)
		err = s.config.Store.Change(ctx, from, b)
		if fault.Is(err, fault.Conflict) {
			continue // the status has changed; statuses never recur, so the loop ends
		}
		if err == nil {
			s.config.Wake(ctx, b)
		}
		return b, err
	}
}
