package mcpserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cutroom/shared/client"
)

func advised(err error) error {
	if next := advice(err); next != "" {
		return fmt.Errorf("%s. %s", strings.TrimSuffix(err.Error(), "."), next)
	}
	return err
}

func advice(err error) string {
	var broken *client.ConnectionError
	if errors.As(err, &broken) {
		return "Tell the user that the server cannot be reached: is it running, and are CUTROOM_URL and " +
			"CUTROOM_INFERENCE_URL correct? \"cutroom doctor\" finds the cause."
	}
	var failure *client.Error
	if !errors.As(err, &failure) {
		return ""
	}
	switch failure.Status {
	case http.StatusUnauthorized:
		return "Tell the user that the key is invalid: \"cutroom login\" stores a valid key, and CUTROOM_API_KEY " +
			"overrides it."
	case http.StatusForbidden:
		return "The key has no permission for this: ask the user for another key."
	case http.StatusNotFound:
		return "list_jobs lists the existing jobs, and list_models the models. Results are kept for 24 hours."
	case http.StatusConflict:
		return "get_job waits for the job, and reports why it failed."
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return "Correct the named arguments and call again."
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if failure.RetryAfter > 0 {
			return fmt.Sprintf("Call again in %s.", failure.RetryAfter.Round(time.Second))
		}
		return "Call again later."
	}
	if failure.Status >= http.StatusInternalServerError {
		return fmt.Sprintf("Call again later; the request is in the server's log as %q.", failure.RequestID)
	}
	return ""
}
