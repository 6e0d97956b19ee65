package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"cutroom/shared/testkit/servertest"
)

const (
	// authCallers is the number of concurrent clients, each with a keep-alive connection.
	authCallers = 64
	// authTime is how long each kind of request is measured, after a warm-up of authWarmUp.
	authTime, authWarmUp = 4 * time.Second, time.Second
	// authBar is the minimum rate for each kind of request, in requests per second. The minimum for new tokens is
	// lower if the disk is slow: mintBar times the rate of synced writes.
	authBar, mintBar = 5000, 0.5
)

// auth creates client tokens and then sends one request with each, so that no authentication is answered from a
// cache. The client shares the CPUs with the server. The floor of an authentication is the rate at which the same
// client can call /healthz, which does nothing. The floor of a new token is the rate of small writes that are synced
// one after another, because a token is stored durably before the response.
func (b *bench) auth(ctx context.Context) error {
	server, stop, err := b.serve(ctx, "auth")
	if err != nil {
		return err
	}
	defer stop()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: authCallers, DisableCompression: true}}
	defer client.CloseIdleConnections()

	floor, err := perSecond(ctx, func(ctx context.Context) error {
		_, err := send(ctx, client, http.MethodGet, server.URL()+"/healthz", "", "", http.StatusOK)
		return err
	})
	if err != nil {
		return err
	}
	tokens, minted, err := mintTokens(ctx, client, server.URL())
	if err != nil {
		return err
	}
	var used atomic.Int64
	authenticated, err := perSecond(ctx, func(ctx context.Context) error {
		token := tokens[int(used.Add(1)-1)%len(tokens)]
		// The 404 for the missing job shows that the client was authenticated.
		_, err := send(ctx, client, http.MethodGet, server.URL()+"/v1/jobs/job_unknown", token, "", http.StatusNotFound)
		return err
	})
	if err != nil {
		return err
	}
	synced, err := syncedWrites(b.folder)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		what, of              string
		perSecond, floor, bar float64
	}{
		{"client tokens minted", "synced writes", minted, synced, min(authBar, mintBar*synced)},
		{"client tokens authenticated", "/healthz", authenticated, floor, authBar},
	} {
		b.table.add(row{
			what:     fmt.Sprintf("%s, %d callers", r.what, authCallers),
			measured: fmt.Sprintf("%.0f/s", r.perSecond),
			floor:    fmt.Sprintf("%.0f/s of %s", r.floor, r.of),
			ratio:    fmt.Sprintf("%.2f x", r.perSecond/r.floor),
			bar:      fmt.Sprintf("%.0f/s", r.bar),
			verdict:  verdictOf(r.perSecond >= r.bar),
		})
	}
	return nil
}

// syncedWrites returns how many small writes per second the disk stores one after another.
func syncedWrites(folder string) (float64, error) {
	file, err := os.CreateTemp(folder, "synced-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	page, written := make([]byte, 4<<10), 0
	for begun := time.Now(); time.Since(begun) < authTime; written++ {
		if _, err := file.Write(page); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
	}
	return float64(written) / authTime.Seconds(), nil
}

func mintTokens(ctx context.Context, client *http.Client, url string) (tokens []string, minted float64, err error) {
	var mu sync.Mutex
	minted, err = perSecond(ctx, func(ctx context.Context) error {
		body, err := send(ctx, client, http.MethodPost, url+"/v1/client/tokens", servertest.Key,
			`{"expiresIn": 3600}`, http.StatusOK)
		if err != nil {
			return err
		}
		var token struct {
			APIKey string `json:"apiKey"`
		}
		if err := json.Unmarshal(body, &token); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		tokens = append(tokens, token.APIKey)
		return nil
	})
	return tokens, minted, err
}

// perSecond starts authCallers concurrent clients that repeat a call, and returns the total number of calls per
// second.
func perSecond(ctx context.Context, call func(context.Context) error) (float64, error) {
	callers, ctx := errgroup.WithContext(ctx)
	counted := make([]int, authCallers)
	from := time.Now().Add(authWarmUp)
	until := from.Add(authTime)
	for caller := range authCallers {
		callers.Go(func() error {
			for {
				if err := call(ctx); err != nil {
					return err
				}
				switch now := time.Now(); {
				case now.After(until):
					return nil
				case now.After(from):
					counted[caller]++
				}
			}
		})
	}
	err := callers.Wait()
	sum := 0
	for _, n := range counted {
		sum += n
	}
	return float64(sum) / authTime.Seconds(), err
}

// send returns the response body, and an error if the response does not have the given status.
func send(ctx context.Context, client *http.Client, method, url, key, body string, status int) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if key != "" {
		request.Header.Set("x-api-key", key)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != status {
		err = fmt.Errorf("%s %s: status %d, want %d: %s", method, url, response.StatusCode, status, answer)
	}
	return answer, err
}
