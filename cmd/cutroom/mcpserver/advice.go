package mcpserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cutroom/shared/client"
)

// advised adds advice for an agent to an error.
func advised(err error) error {
	if next := advice(err); next != "" {
		return fmt.Errorf("%s. %s", strings.TrimSuffix(err.Error(), "."), next)
	}
	return err
}

func advice(err error) string {
	var broken *client.ConnectionError
	if errors.As(err, &broken) {
		return "Tell the user that the server is not reached: is it running, and are CUTROOM_URL and " +
			"CUTROOM_INFERENCE_URL right? \"cutroom doctor\" looks for the cause."
	}
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	switch refusal.Status {
	case http.StatusUnauthorized:
		return "Tell the user that the key is not accepted: \"cutroom login\" keeps one that works, and CUTROOM_API_KEY " +
			"takes its place."
	case http.StatusForbidden:
		return "The key may not do this: ask the user for one that may."
	case http.StatusNotFound:
		return "list_jobs lists the jobs and list_models the models that there are. Results are kept for 24 hours."
	case http.StatusConflict:
		return "get_job waits for the job, and says why one has failed."
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return "Change the arguments that are named, and call again."
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if refusal.RetryAfter > 0 {
			return fmt.Sprintf("Call again in %s.", refusal.RetryAfter.Round(time.Second))
		}
		return "Call again later."
	}
	if refusal.Status >= http.StatusInternalServerError {
		return fmt.Sprintf("Call again later; the server's log has the request as %q.", refusal.RequestID)
	}
	return ""
}
