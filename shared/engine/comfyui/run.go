package comfyui

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/engine"
	"cutroom/shared/engine/transfer"
)

const (
	// These limits are in bytes.
	maxResult          = 2 << 30
	maxID, maxFileName = 128, 1024
	// folder is the subfolder for this package's files on a server.
	folder = "cutroom"
)

type run struct {
	engine   *Engine
	server   *server
	workflow *workflow
	spec     engine.Spec
	inputs   transfer.Inputs
	progress func(engine.Progress)

	// id is the run's id on the server. Until the server responds, it is the id that this engine proposed.
	id string
	// watch cancels the run if the server is silent for too long.
	watch *time.Timer
	shown time.Time
}

var (
	errSilent  = errors.New("the server is silent")
	errStalled = errors.New("the workflow makes no progress")
)

func (r *run) generate(ctx context.Context) (made transfer.Made, err error) {
	random := make([]byte, 16)
	if _, err := io.ReadFull(r.engine.random, random); err != nil {
		return made, fmt.Errorf("comfyui: %w", err)
	}
	r.id = uuid(random)
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.watch = time.AfterFunc(r.server.silence, func() { stop(errSilent) })
	defer r.watch.Stop()
	made, err = r.steps(within, stop)
	if err != nil {
		return made, explain(ctx, within, err)
	}
	return made, nil
}

// uuid formats random bytes as a version 4 UUID (RFC 9562).
func uuid(b []byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	text := hex.EncodeToString(b)
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

func (r *run) alive() { r.watch.Reset(r.server.silence) }

func (r *run) steps(ctx context.Context, stop context.CancelCauseFunc) (made transfer.Made, err error) {
	var uploaded names
	if uploaded.data, err = r.upload(ctx, r.inputs.Data, "data"); err != nil {
		return made, err
	}
	if uploaded.reference, err = r.upload(ctx, r.inputs.Reference, "reference"); err != nil {
		return made, err
	}
	filled := r.workflow.fill(r.spec, uploaded, folder+"/"+r.id)
	// The connection uses the run's id as its client id, so it receives only this run's messages.
	listening := r.listen(ctx)
	defer listening.close()
	defer func() {
		if !r.server.forget(ctx, r.id) {
			r.server.setStuck(r.id)
		}
	}()
	if err := r.submit(ctx, filled, listening.client); err != nil {
		return made, err
	}
	defer r.server.release(r.id)
	done, err := r.follow(ctx, stop, listening, newMeter(filled))
	if err != nil {
		return made, err
	}
	return r.download(ctx, done)
}

func (r *run) upload(ctx context.Context, file transfer.Made, called string) (string, error) {
	if file.Path == "" {
		return "", nil
	}
	r.progress(engine.Progress{Fraction: prepared, Stage: "upload"})
	name := r.id + "-" + called + filepath.Ext(file.Path)
	// Use the folder for temporary files, which servers empty at startup.
	form, contentType := transfer.Form(
		[]transfer.Field{{Name: "type", Value: "temp"}, {Name: "subfolder", Value: folder}, {Name: "overwrite", Value: "true"}},
		transfer.File{Field: "image", Name: name, Path: file.Path, MIME: file.MIME})
	defer form.Close()
	response, err := r.server.send(ctx, http.MethodPost, "/upload/image", &watched{form, r.alive}, contentType)
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusRequestEntityTooLarge {
		return "", failed("The input is too large for the engine.", false,
			fmt.Errorf("%w: raise --max-upload-size of ComfyUI", err))
	}
	if err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	var stored struct{ Name, Subfolder, Type string }
	if err := decode(response, &stored); err != nil {
		return "", err
	}
	r.alive()
	if stored.Name != name || stored.Subfolder != folder || stored.Type != "temp" {
		return "", &nonsenseError{fmt.Errorf("the upload was stored as %.100q in %.100q of %.100q",
			stored.Name, stored.Subfolder, stored.Type)}
	}
	return folder + "/" + name + " [temp]", nil
}

func (r *run) submit(ctx context.Context, filled graph, client string) error {
	var accepted struct {
		ID string `json:"prompt_id"`
	}
	err := r.server.post(ctx, "/prompt", map[string]any{
		"prompt": filled, "client_id": client, "prompt_id": r.id,
	}, &accepted)
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusBadRequest {
		// Since it was checked, the server may have lost something that the workflow needs.
		r.server.setComplete(r.workflow, false)
		return r.invalid(status)
	}
	if err != nil {
		return err
	}
	r.alive()
	if accepted.ID == "" || len(accepted.ID) > maxID {
		return &nonsenseError{errors.New("the response has no run id")}
	}
	if !r.server.take(accepted.ID) {
		return &nonsenseError{errors.New("the response has the id of another run")}
	}
	// Older versions ignore the given id and choose one themselves.
	r.id = accepted.ID
	return nil
}

func (r *run) download(ctx context.Context, done *record) (made transfer.Made, err error) {
	file, found := resultOf(done.Outputs[r.workflow.Result])
	if !found {
		return made, failed(job.NoResultMessage, true,
			fmt.Errorf("comfyui: node %s has no output file", r.workflow.Result))
	}
	query := url.Values{"filename": {file.Name}, "subfolder": {file.Subfolder}, "type": {file.Type}}
	response, err := r.server.send(ctx, http.MethodGet, "/view?"+query.Encode(), nil, "")
	if err != nil {
		return made, fmt.Errorf("download: %w", err)
	}
	defer response.Body.Close()
	content := bufio.NewReader(&watched{response.Body, r.alive})
	// Reject a file that is not media before it can fill the disk.
	head, err := content.Peek(media.SniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return made, fmt.Errorf("download: %w", err)
	}
	kind, known := sniff.Media(head)
	if !known || r.spec.Kind == catalog.Image && !kind.Image || r.spec.Kind != catalog.Image && !kind.Video {
		return made, failed(job.NoResultMessage, true, fmt.Errorf("comfyui: the result has type %q", kind.MIME))
	}
	made.Path, made.MIME = filepath.Join(r.spec.Folder, "generated"), kind.MIME
	written, err := transfer.Save(r.spec, made.Path, content, maxResult)
	if err != nil {
		return made, fmt.Errorf("download: %w", err)
	}
	if written > maxResult {
		return made, failed(job.NoResultMessage, true, fmt.Errorf("comfyui: the result has more than %d bytes", maxResult))
	}
	return made, nil
}

type watched struct {
	from  io.Reader
	alive func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if n > 0 {
		w.alive()
	}
	return n, err
}
