package httpserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

const askTime = 4 * time.Second

// AskHealth returns an error unless the server returns 200 for /healthz. Containers use it as their
// health check. It replaces an empty or wildcard host with localhost, and uses no proxy.
func AskHealth(ctx context.Context, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the health check at %s returned status %d", address, response.StatusCode)
	}
	return nil
}
