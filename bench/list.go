package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"cutroom/bench/filled"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/servertest"
)

const (
	fewFiles, manyFiles = 1_000, 1_000_000
	listPage            = 100
	listRounds          = 400
	// listBar is the maximum time for a page among many files, as a multiple of the time for the
	// first page among few. unsweptBar is higher, because a page of unexpired files then reads ten times as many index
	// entries. A running server deletes expired files within minutes, so this state does not last.
	listBar, unsweptBar = 1.2, 2.5
	// fewKey is the key of the account with few files. The development key belongs to manyAccount, which has many
	// files. unsweptKey is the key of an account with as many files, nine in ten of which have expired.
	fewKey         = "ck_bench-few-files"
	fewAccount     = "few"
	manyAccount    = "dev"
	unsweptKey     = "ck_bench-unswept-files"
	unsweptAccount = "unswept"
)

type pageReader func(ctx context.Context) error

// list reads pages of two accounts alternately: one with a million files and one with a thousand. It reads them
// through the service's code and over HTTP. The floor is the first page of the account with a thousand files.
func (b *bench) list(ctx context.Context) error {
	data := filepath.Join(b.folder, "list")
	defer os.RemoveAll(data)
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	path, now := filepath.Join(data, "cutroom.db"), time.Now()
	if err := fillFiles(ctx, path, now); err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	if err := b.listByCode(ctx, path, now); err != nil {
		return err
	}
	return b.listByHTTP(ctx, data, manyFiles)
}

func fillFiles(ctx context.Context, path string, now time.Time) error {
	for key, account := range map[string]string{fewKey: fewAccount, unsweptKey: unsweptAccount} {
		if err := filled.Key(ctx, path, key, account, now); err != nil {
			return err
		}
	}
	return filled.Write(ctx, path, filled.Files{Account: fewAccount, Count: fewFiles, Now: now},
		filled.Files{Account: manyAccount, Count: manyFiles, Now: now}, unswept(0, manyFiles, now))
}

func unswept(from, count int, now time.Time) filled.Files {
	return filled.Files{Account: unsweptAccount, From: from, Count: count, Now: now.Add(-file.DefaultLifetime - time.Hour)}
}

// stopSweeps keeps the next server on a folder from sweeping for ten minutes. It writes a clock file that makes the
// machine seem to have been off for a week, so the server does not trust its clock yet.
func stopSweeps(data string, now time.Time) error {
	text := fmt.Sprintf("cutroom-clock %020d %020d before\n", now.Add(-7*24*time.Hour).UnixMilli(), 0)
	return os.WriteFile(filepath.Join(data, "clock"), []byte(text), 0o600)
}

func (b *bench) listByCode(ctx context.Context, path string, now time.Time) error {
	store, err := sqlite.Open(ctx, path, sqlite.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer store.Close()
	cursors := file.NewCursors([]byte("bench"))
	at := func(now time.Time) *file.Service {
		return file.NewService(file.Config{Store: store.Files(), Cursors: cursors, Now: func() time.Time { return now }})
	}
	today, tomorrow := at(now), at(now.Add(file.DefaultLifetime))
	read := func(s *file.Service, account string, cursor func(context.Context) (string, error)) pageReader {
		return func(ctx context.Context) error {
			after, err := cursor(ctx)
			if err != nil {
				return err
			}
			files, _, err := s.List(ctx, account, after, listPage)
			if err == nil && len(files) != listPage {
				err = fmt.Errorf("%d files on a page of %s", len(files), account)
			}
			return err
		}
	}
	first := func(context.Context) (string, error) { return "", nil }
	deep := func(ctx context.Context) (string, error) {
		// The page starts at a random position past the middle, with more pages after it.
		return cursors.Make(ctx, manyAccount, filled.ID(manyAccount, manyFiles/100+rand.IntN(manyFiles/2)))
	}
	return b.listRows(ctx, "list page of 100, without HTTP", read(today, fewAccount, first), []namedPage{
		{"first of 1,000,000", read(today, manyAccount, first), listBar},
		{"deep in 1,000,000", read(today, manyAccount, deep), listBar},
		{"first of 1,000,000, 9 in 10 expired, none swept", read(tomorrow, manyAccount, first), unsweptBar},
		{"deep in 1,000,000, 9 in 10 expired, none swept", read(tomorrow, manyAccount, deep), unsweptBar},
	})
}

func (b *bench) listByHTTP(ctx context.Context, data string, files int) error {
	if err := stopSweeps(data, time.Now()); err != nil {
		return err
	}
	server, err := b.program.Start(ctx, data)
	if err != nil {
		return err
	}
	defer server.Kill()
	secret, err := os.ReadFile(filepath.Join(data, "secret"))
	if err != nil {
		return err
	}
	cursors := file.NewCursors(bytes.TrimSpace(secret))
	first := func(client *servertest.Client) pageReader {
		return func(ctx context.Context) error { return readPage(ctx, client, "", listPage) }
	}
	deep := func(client *servertest.Client, account string) pageReader {
		return func(ctx context.Context) error {
			// The page is at a random position, with more pages after it.
			cursor, err := cursors.Make(ctx, account, filled.ID(account, files/100+rand.IntN(files-files/100)))
			if err != nil {
				return err
			}
			return readPage(ctx, client, cursor, listPage)
		}
	}
	client := func(key string) *servertest.Client { return &servertest.Client{URL: server.URL(), Key: key} }
	of := humanize.Comma(int64(files))
	return b.listRows(ctx, "list page of 100, through HTTP", first(client(fewKey)), []namedPage{
		{"first of " + of, first(server.Client()), listBar},
		{"deep in " + of, deep(server.Client(), manyAccount), listBar},
		{"first of " + of + ", 9 in 10 expired, none swept", first(client(unsweptKey)), unsweptBar},
		{"deep in " + of + ", 9 in 10 expired, none swept", deep(client(unsweptKey), unsweptAccount), unsweptBar},
	})
}

func readPage(ctx context.Context, client *servertest.Client, cursor string, limit int) error {
	answer, err := client.Get(ctx, fmt.Sprintf("/v1/files?limit=%d", limit)+cursorParameter(cursor))
	if err != nil {
		return err
	}
	var page struct {
		Files []struct{} `json:"files"`
	}
	if answer.Status == http.StatusOK {
		err = json.Unmarshal(answer.Body, &page)
	}
	if err != nil || len(page.Files) != limit {
		return fmt.Errorf("no page of %d files: status %d: %.200s", limit, answer.Status, answer.Body)
	}
	return nil
}

func cursorParameter(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "&cursor=" + url.QueryEscape(cursor)
}

type namedPage struct {
	name string
	read pageReader
	bar  float64
}

func (b *bench) listRows(ctx context.Context, what string, floor pageReader, pages []namedPage) error {
	took := make([][]time.Duration, len(pages)+1)
	for range listRounds {
		for i, page := range append([]namedPage{{read: floor}}, pages...) {
			begun := time.Now()
			if err := page.read(ctx); err != nil {
				return err
			}
			took[i] = append(took[i], time.Since(begun))
		}
	}
	b.table.add(row{
		what: what, measured: short(median(took[0])), floor: "first of 1,000", ratio: "-", bar: "-", verdict: noBar,
	})
	for i, page := range pages {
		measured, floor := median(took[i+1]), median(took[0])
		b.table.add(row{
			what: "  " + page.name, measured: short(measured), floor: short(floor),
			ratio: ratio(measured, floor), bar: fmt.Sprintf("%.1f x", page.bar),
			verdict: verdictOf(measured.Seconds() <= page.bar*floor.Seconds()),
		})
	}
	return nil
}
