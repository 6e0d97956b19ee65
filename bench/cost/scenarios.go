package cost

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"cutroom/shared/app/awscost"
	"cutroom/shared/testkit/servertest"
)

// How often each thing is done and counted, after uncounted runs: as many as it takes until
// the time of a run is known (job.Pace).
const (
	uncounted = 3
	jobRuns   = 10
	imageRuns = 5
	fastRuns  = 20
)

// scenarios measures everything that clients do.
func (w *world) scenarios(ctx context.Context) ([]awscost.Scenario, error) {
	var all []awscost.Scenario
	for _, measure := range []func(context.Context) ([]awscost.Scenario, error){
		w.jobScenarios, w.imageScenario, w.uploadScenario, w.signedUploadScenario, w.completionScenarios,
		w.lookScenario,
	} {
		scenarios, err := measure(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, scenarios...)
	}
	return all, nil
}

// repeat does something so many times, and counts all but the first.
func (t *tally) repeat(runs int, once func() error) error {
	for i := range uncounted + runs {
		if i == uncounted {
			t.begin()
		}
		if err := once(); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		t.runs++
	}
	return nil
}

// sample reads a file of the repository.
func sample(path ...string) ([]byte, error) { return os.ReadFile(filepath.Join(path...)) }

// prompt is a prompt of 1 KB.
var prompt = strings.Repeat("A watercolor painting of this. ", 34)[:1024]

// jobScenarios: a clip is edited from its submission to the end of its job, then the job
// is read and its result downloaded.
func (w *world) jobScenarios(ctx context.Context) ([]awscost.Scenario, error) {
	clip, err := sample("testdata", "clip.mp4")
	if err != nil {
		return nil, err
	}
	t := w.newTally("job")
	jobs, err := t.function(ctx, "jobs", true)
	if err != nil {
		return nil, err
	}
	work, err := w.newWork(ctx, t)
	if err != nil {
		return nil, err
	}
	var id string
	if err := t.repeat(jobRuns, func() error {
		if id, err = w.submit(ctx, jobs, clip); err != nil {
			return err
		}
		return work.finish(ctx, id)
	}); err != nil {
		return nil, err
	}
	if err := work.end(); err != nil {
		return nil, err
	}
	job, err := t.scenario("video jobs, from submission to their end")
	if err != nil {
		return nil, err
	}
	status, err := w.reading(ctx, "status", "reads of a job's status", "jobs", "/v1/jobs/{id}", "/v1/jobs/"+id)
	if err != nil {
		return nil, err
	}
	content, err := w.reading(ctx, "content", "downloads of a result, without the transfer", "content",
		"/v1/jobs/{id}/content", "/v1/jobs/"+id+"/content")
	return []awscost.Scenario{job, status, content}, err
}

// submit submits a job and returns its id.
func (w *world) submit(ctx context.Context, jobs *part, clip []byte) (id string, err error) {
	r, err := form("/v1/jobs/{id}", "/v1/jobs/gen-2.5", w.key(),
		servertest.Form{servertest.File("data", "clip.mp4", clip), servertest.Text("prompt", prompt)})
	if err != nil {
		return "", err
	}
	body, err := jobs.request(ctx, r)
	if err != nil {
		return "", err
	}
	var answer struct {
		ID string `json:"job_id"`
	}
	err = json.Unmarshal(body, &answer)
	return answer.ID, err
}

// reading measures a GET.
func (w *world) reading(ctx context.Context, name, title, function, resource, path string) (awscost.Scenario, error) {
	t := w.newTally(name)
	f, err := t.function(ctx, function, true)
	if err != nil {
		return awscost.Scenario{}, err
	}
	if err := t.repeat(fastRuns, func() error {
		_, err := f.request(ctx, get(resource, path, w.key()))
		return err
	}); err != nil {
		return awscost.Scenario{}, err
	}
	return t.scenario(title)
}

// imageScenario: a picture is edited while the caller waits, by a running worker.
func (w *world) imageScenario(ctx context.Context) ([]awscost.Scenario, error) {
	picture, err := sample("testdata", "reference.jpg")
	if err != nil {
		return nil, err
	}
	t := w.newTally("image")
	images, err := t.function(ctx, "images", true)
	if err != nil {
		return nil, err
	}
	work, err := w.newWork(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := t.repeat(imageRuns, func() error {
		r, err := form("/v1/generate/{id}", "/v1/generate/gen-image-2", w.key(),
			servertest.Form{servertest.File("data", "a.jpg", picture), servertest.Text("prompt", prompt)})
		if err != nil {
			return err
		}
		if _, err := images.request(ctx, r); err != nil {
			return err
		}
		id, err := work.latest(ctx)
		if err != nil {
			return err
		}
		return work.finish(ctx, id)
	}); err != nil {
		return nil, err
	}
	if err := work.end(); err != nil {
		return nil, err
	}
	s, err := t.scenario("image edits by a running worker")
	return []awscost.Scenario{s}, err
}

// uploadSize is the size of the files that are uploaded, in bytes.
const uploadSize = 1 << 20

func (w *world) uploadScenario(ctx context.Context) ([]awscost.Scenario, error) {
	t := w.newTally("upload")
	files, err := t.function(ctx, "files", true)
	if err != nil {
		return nil, err
	}
	content := make([]byte, uploadSize)
	if err := t.repeat(fastRuns, func() error {
		content[0]++
		r, err := form("/v1/files", "/v1/files", w.key(), servertest.Form{servertest.File("file", "a.bin", content)})
		if err != nil {
			return err
		}
		_, err = files.request(ctx, r)
		return err
	}); err != nil {
		return nil, err
	}
	s, err := t.scenario("uploads of 1 MiB in a form")
	return []awscost.Scenario{s}, err
}

// signedUploadScenario: the file is announced, put to the signed URL, and found by the
// function arrived.
func (w *world) signedUploadScenario(ctx context.Context) ([]awscost.Scenario, error) {
	t := w.newTally("signed-upload")
	files, err := t.function(ctx, "files", true)
	if err != nil {
		return nil, err
	}
	arrived, err := t.function(ctx, "arrived", false)
	if err != nil {
		return nil, err
	}
	event, err := sample("events", "arrived", "uploaded.json")
	if err != nil {
		return nil, err
	}
	content := make([]byte, uploadSize)
	if err := t.repeat(fastRuns, func() error {
		content[0]++
		sum := md5.Sum(content)
		r, err := post("/v1/files", map[string]string{"x-api-key": w.key()}, map[string]any{
			"filename": "a.bin", "mime_type": "application/octet-stream", "size_bytes": len(content),
			"md5": hex.EncodeToString(sum[:]),
		})
		if err != nil {
			return err
		}
		body, err := files.request(ctx, r)
		if err != nil {
			return err
		}
		var answer struct {
			ID     string
			Upload struct {
				URL     string
				Headers map[string]string
			}
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		// The URL leads to the tap, which counts the PUT.
		if err := put(ctx, answer.Upload.URL, answer.Upload.Headers, content); err != nil {
			return err
		}
		return arrived.invoke(ctx, bytes.ReplaceAll(event, []byte("file_0BxSampleSigned00000000000"), []byte(answer.ID)))
	}); err != nil {
		return nil, err
	}
	s, err := t.scenario("uploads by a signed URL")
	return []awscost.Scenario{s}, err
}

func put(ctx context.Context, url string, header map[string]string, content []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(content))
	if err != nil {
		return err
	}
	for field, value := range header {
		request.Header.Set(field, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("put a file: status %d", response.StatusCode)
	}
	return nil
}

// lookScenario: the schedule starts the function scale, which finds nothing to do.
func (w *world) lookScenario(ctx context.Context) ([]awscost.Scenario, error) {
	t := w.newTally(awscost.LookScenario)
	scale, err := t.function(ctx, "scale", false)
	if err != nil {
		return nil, err
	}
	event, err := sample("events", "scale", "minute.json")
	if err != nil {
		return nil, err
	}
	if err := t.repeat(fastRuns, func() error { return scale.invoke(ctx, event) }); err != nil {
		return nil, err
	}
	s, err := t.scenario("looks at how many workers are needed")
	return []awscost.Scenario{s}, err
}
