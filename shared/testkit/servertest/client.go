package servertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"cutroom/shared/testkit/await"
)

// Client calls the media API with a key.
type Client struct{ URL, Key string }

type Job struct {
	ID          string   `json:"job_id"`
	Status      string   `json:"status"`
	Model       string   `json:"model"`
	CreatedAt   string   `json:"created_at"`
	StartedAt   string   `json:"started_at"`
	CompletedAt string   `json:"completed_at"`
	Progress    float64  `json:"progress"`
	Seed        uint32   `json:"seed"`
	Result      *Result  `json:"result"`
	Error       *Failure `json:"error"`
}

type Result struct {
	// Credentials is nil if the result is not signed.
	Credentials *struct {
		SourceType string `json:"source_type"`
		SignedBy   string `json:"signed_by"`
		SignedAt   string `json:"signed_at"`
	} `json:"content_credentials"`
}

// Failure is why a job failed.
type Failure struct{ Code, Message string }

func (j Job) Ended() bool { return j.Status == "completed" || j.Status == "failed" }

type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

type StatusError Answer

func (r *StatusError) Error() string { return fmt.Sprintf("status %d: %s", r.Status, r.Body) }

// Detail returns the detail in the error's body if it is a string, and "" otherwise.
func (r *StatusError) Detail() string {
	var body struct{ Detail string }
	if json.Unmarshal(r.Body, &body) != nil {
		return ""
	}
	return body.Detail
}

// Call sends a request with the client's key and reads the complete response, whatever its status,
// within await.Max. headers holds name/value pairs.
//
// Errors: transport errors.
func (c *Client) Call(ctx context.Context, method, path string, body io.Reader, length int64,
	headers ...string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, await.Max)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return Answer{}, err
	}
	if body != nil {
		request.ContentLength = length
	}
	if c.Key != "" {
		request.Header.Set("x-api-key", c.Key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("%s %s: read the response: %w", method, path, err)
	}
	return Answer{response.StatusCode, response.Header, content}, nil
}

// Get sends a GET request (see Call).
func (c *Client) Get(ctx context.Context, path string, headers ...string) (Answer, error) {
	return c.Call(ctx, http.MethodGet, path, nil, 0, headers...)
}

// Submit creates a job for the model.
//
// Errors: *StatusError; transport errors.
func (c *Client) Submit(ctx context.Context, model string, form Form) (Job, error) {
	body, length, contentType := form.Encode()
	answer, err := c.Call(ctx, http.MethodPost, "/v1/jobs/"+model, body, length, "Content-Type", contentType)
	return jobOf(answer, err)
}

func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	return jobOf(c.Get(ctx, "/v1/jobs/"+id))
}

// Await polls a job until it has ended. If seen is not nil, it is called with the job after each poll.
func (c *Client) Await(ctx context.Context, id string, seen func(Job)) (Job, error) {
	const every = 25 * time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		job, err := c.Job(ctx, id)
		if err != nil {
			return job, err
		}
		if seen != nil {
			seen(job)
		}
		if job.Ended() {
			return job, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return job, fmt.Errorf("job %s is %s: %w", id, job.Status, context.Cause(ctx))
		}
	}
}

// Content returns a job's result.
//
// Errors: *StatusError; transport errors.
func (c *Client) Content(ctx context.Context, id string) (Answer, error) {
	answer, err := c.Get(ctx, "/v1/jobs/"+id+"/content")
	if err != nil {
		return answer, err
	}
	return answer, expect(answer, http.StatusOK)
}

func jobOf(answer Answer, err error) (Job, error) {
	if err != nil {
		return Job{}, err
	}
	if err := expect(answer, http.StatusOK); err != nil {
		return Job{}, err
	}
	var job Job
	if err := json.Unmarshal(answer.Body, &job); err != nil {
		return Job{}, fmt.Errorf("the response is not a job: %w: %s", err, answer.Body)
	}
	return job, nil
}

func expect(answer Answer, status int) error {
	if answer.Status != status {
		failure := StatusError(answer)
		return &failure
	}
	return nil
}
