package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/boundedjson"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
)

// maxBatchRequest is the maximum size of the body of POST /v1/batches, in bytes.
const maxBatchRequest = 64 << 10

// maxBatchValues is the maximum number of values and member names in a batch request.
const maxBatchValues = 10_000

type batchBody struct {
	ID               string             `json:"id"`
	Object           string             `json:"object"`
	Endpoint         string             `json:"endpoint"`
	Model            *string            `json:"model"`
	Errors           *listOf[batchFlaw] `json:"errors"`
	InputFileID      string             `json:"input_file_id"`
	CompletionWindow string             `json:"completion_window"`
	Status           batch.Status       `json:"status"`
	OutputFileID     *string            `json:"output_file_id"`
	ErrorFileID      *string            `json:"error_file_id"`
	CreatedAt        int64              `json:"created_at"`
	InProgressAt     *int64             `json:"in_progress_at"`
	ExpiresAt        int64              `json:"expires_at"`
	FinalizingAt     *int64             `json:"finalizing_at"`
	CompletedAt      *int64             `json:"completed_at"`
	FailedAt         *int64             `json:"failed_at"`
	ExpiredAt        *int64             `json:"expired_at"`
	CancellingAt     *int64             `json:"cancelling_at"`
	CancelledAt      *int64             `json:"cancelled_at"`
	RequestCounts    batchCounts        `json:"request_counts"`
	Metadata         map[string]string  `json:"metadata"`
}

type batchCounts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

type listOf[T any] struct {
	Object string `json:"object"`
	Data   []T    `json:"data"`
}

type batchFlaw struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
	Line    *int    `json:"line"`
}

const completionWindow = "24h"

func newBatchBody(b batch.Batch) batchBody {
	body := batchBody{
		ID: b.ID, Object: "batch", Endpoint: b.Endpoint, Model: optional(b.Model), InputFileID: b.Input,
		CompletionWindow: completionWindow, Status: b.Status, CreatedAt: b.CreatedAt.Unix(),
		InProgressAt: unixOf(b.InProgressAt), ExpiresAt: b.ExpiresAt.Unix(), FinalizingAt: unixOf(b.FinalizingAt),
		CancellingAt: unixOf(b.CancellingAt), Metadata: b.Metadata,
		RequestCounts: batchCounts{Total: b.Total, Completed: b.Answered, Failed: b.Failed},
	}
	switch ended := unixOf(b.EndedAt); b.Status {
	case batch.Completed:
		body.CompletedAt = ended
	case batch.Failed:
		body.FailedAt = ended
	case batch.Expired:
		body.ExpiredAt = ended
	case batch.Cancelled:
		body.CancelledAt = ended
	}
	if b.Status.Ended() { // the result files do not exist until then
		body.OutputFileID, body.ErrorFileID = optional(b.Output), optional(b.Failures)
	}
	if len(b.Errors) > 0 {
		body.Errors = &listOf[batchFlaw]{Object: "list"}
		for _, e := range b.Errors {
			flaw := batchFlaw{Code: e.Code, Message: e.Message, Param: optional(e.Param), Line: optional(e.Line)}
			body.Errors.Data = append(body.Errors.Data, flaw)
		}
	}
	return body
}

func optional[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

type batchRequest struct {
	InputFileID        string            `json:"input_file_id"`
	Endpoint           string            `json:"endpoint"`
	CompletionWindow   string            `json:"completion_window"`
	Metadata           map[string]string `json:"metadata"`
	OutputExpiresAfter *struct {
		Anchor  string `json:"anchor"`
		Seconds int64  `json:"seconds"`
	} `json:"output_expires_after"`
}

func (g *Gateway) createBatch(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	asked, err := readBatchRequest(w, r)
	if err != nil {
		return err
	}
	request := batch.Request{
		Account: who.Account(), Key: who.Key.ID, Endpoint: asked.Endpoint, Input: asked.InputFileID, Metadata: asked.Metadata,
		StoredBytes: who.Tier.StoredBytes,
	}
	if after := asked.OutputExpiresAfter; after != nil {
		if after.Anchor != fileAnchor {
			return apierror.Invalid("output_expires_after.anchor", apierror.InvalidValue, "The anchor must be %q.", fileAnchor)
		}
		request.OutputLifetime, err = fileLifetime("output_expires_after.seconds", after.Seconds)
		if err != nil {
			return err
		}
	}
	b, err := g.config.Batches.Service.Create(r.Context(), request)
	if fault.Is(err, fault.NotFound) {
		return apierror.Invalid("input_file_id", apierror.InvalidValue, "The file %.80q does not exist.", asked.InputFileID)
	}
	if err != nil {
		return err
	}
	return respond(w, newBatchBody(b))
}

func readBatchRequest(w http.ResponseWriter, r *http.Request) (asked batchRequest, err error) {
	release, err := httpserver.AwaitCompressed(r, http.MaxBytesReader(w, r.Body, maxBatchRequest))
	if err != nil {
		return asked, formError(err)
	}
	defer release()
	if apiErr := decompress(r, maxBatchRequest, nil); apiErr != nil {
		return asked, apiErr
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBatchRequest))
	if err != nil {
		return asked, formError(err)
	}
	if err := boundedjson.Unmarshal(body, maxBatchValues, &asked); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return asked, apierror.Invalid(wrong.Field, apierror.InvalidType, "The field has the wrong type.")
		}
		var limit *boundedjson.LimitError
		if errors.As(err, &limit) {
			return asked, apierror.Invalid("", apierror.InvalidJSON, "The body has more than %d values.", maxBatchValues)
		}
		return asked, apierror.Invalid("", apierror.InvalidJSON, "The body is not valid JSON.")
	}
	for _, field := range [][2]string{
		{"input_file_id", asked.InputFileID}, {"endpoint", asked.Endpoint}, {"completion_window", asked.CompletionWindow},
	} {
		if field[1] == "" {
			return asked, apierror.Invalid(field[0], apierror.MissingParameter, "The field is required.")
		}
	}
	if _, ok := BatchRoute(asked.Endpoint); !ok {
		return asked, apierror.Invalid("endpoint", apierror.InvalidValue, "This endpoint cannot be used for batches.")
	}
	if asked.CompletionWindow != completionWindow {
		return asked, apierror.Invalid("completion_window", apierror.InvalidValue, "The completion window must be %q.", completionWindow)
	}
	return asked, nil
}

func (g *Gateway) getBatch(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	b, err := g.namedBatch(r, who)
	if err != nil {
		return err
	}
	return respond(w, newBatchBody(b))
}

func (g *Gateway) namedBatch(r *http.Request, who credential.Principal) (batch.Batch, error) {
	b, err := g.config.Batches.Service.Get(r.Context(), who.Account(), r.PathValue("batch_id"))
	if err != nil {
		return batch.Batch{}, err
	}
	return b, checkBatch(who, b)
}

// checkBatch rejects a batch whose model the caller may not use. A key may always see its own
// batches, because each of the calls was checked against the key's limits.
func checkBatch(who credential.Principal, b batch.Batch) error {
	switch {
	case b.Key == who.Key.ID:
		return nil
	case b.Model == "" && len(who.Key.Limits.Models) > 0:
		return notAllowed(errors.New("The API key is limited to certain models, and the model of this batch is not known yet."))
	}
	return checkModel(who, b.Model)
}

func (g *Gateway) cancelBatch(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	b, err := g.namedBatch(r, who)
	if err == nil {
		b, err = g.config.Batches.Service.Cancel(r.Context(), b.Account, b.ID)
	}
	if err != nil {
		return err
	}
	return respond(w, newBatchBody(b))
}

func (g *Gateway) listBatches(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	query := r.URL.Query()
	limit, err := pageLimit(query, defaultBatchPage, maxBatchPage)
	if err != nil {
		return err
	}
	after := query.Get("after")
	if after != "" && !strings.HasPrefix(after, "batch_") {
		return apierror.Invalid("after", apierror.InvalidValue, "after must be the id of a batch.")
	}
	page := newListBody(limit)
	for more := true; more && !page.HasMore; {
		var batches []batch.Batch
		batches, more, err = g.config.Batches.Service.List(r.Context(), who.Account(), after, limit+1)
		if err != nil {
			return err
		}
		for _, b := range batches {
			if after = b.ID; page.HasMore || checkBatch(who, b) != nil {
				continue
			}
			if err := page.add(b.ID, newBatchBody(b)); err != nil {
				return err
			}
		}
	}
	return respond(w, page)
}
