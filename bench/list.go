package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"cutroom/bench/filled"
	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/servertest"
)

const (
	fewFiles, manyFiles = 1_000, 1_000_000
	listPage            = 100
	listRounds          = 400
	// listBar is how much longer a page among many files may take than the
	// first page among few.
	listBar = 1.2
	// fewKey is the key of the account with few files, manyAccount the account
	// with many, whose key is the development key.
	fewKey      = "ck_bench-few-files"
	fewAccount  = "few"
	manyAccount = "dev"
)

// pageReader reads one page of files.
type pageReader func(ctx context.Context) error

// list reads pages of an account with a million files and of one with a
// thousand, in turns: by the service's own code and through HTTP. The floor is
// the first page of the thousand.
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
	return b.listByHTTP(ctx, data)
}

// fillFiles makes the two accounts. Nine in ten files of either expire a day later.
func fillFiles(ctx context.Context, path string, now time.Time) error {
	if err := filled.Key(ctx, path, fewKey, fewAccount, now); err != nil {
		return err
	}
	return filled.Write(ctx, path, filled.Files{Account: fewAccount, Count: fewFiles, Now: now},
		filled.Files{Account: manyAccount, Count: manyFiles, Now: now})
}

// listByCode reads pages by the code that serves them, without HTTP.
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
		// Past the middle, and with some pages to follow.
		return cursors.Make(ctx, manyAccount, filled.ID(manyAccount, manyFiles/100+rand.IntN(manyFiles/2)))
	}
	return b.listRows(ctx, "list page of 100, without HTTP", read(today, fewAccount, first), []namedPage{
		{"first of 1,000,000", read(today, manyAccount, first)},
		{"deep in 1,000,000", read(today, manyAccount, deep)},
		{"first of 1,000,000, 9 in 10 expired, none swept", read(tomorrow, manyAccount, first)},
		{"deep in 1,000,000, 9 in 10 expired, none swept", read(tomorrow, manyAccount, deep)},
	})
}

// listByHTTP reads pages as a client does.
func (b *bench) listByHTTP(ctx context.Context, data string) error {
	server, err := b.program.Start(ctx, data)
	if err != nil {
		return err
	}
	defer server.Kill()
	few, many := &servertest.Client{URL: server.URL(), Key: fewKey}, server.Client()
	read := func(client *servertest.Client, cursor func() string) pageReader {
		return func(ctx context.Context) error {
			_, err := readPage(ctx, client, cursor(), listPage)
			return err
		}
	}
	// The cursors of deep pages are found by following pages, as a client does.
	var cursors []string
	for cursor := ""; len(cursors) < manyFiles/2/1000; cursors = append(cursors, cursor) {
		if cursor, err = readPage(ctx, many, cursor, 1000); err != nil {
			return err
		}
	}
	first := func() string { return "" }
	deep := func() string { return cursors[rand.IntN(len(cursors))] }
	return b.listRows(ctx, "list page of 100, through HTTP", read(few, first), []namedPage{
		{"first of 1,000,000", read(many, first)},
		{"deep in 1,000,000", read(many, deep)},
	})
}

// readPage reads a page that must be full, and returns the next one's cursor.
func readPage(ctx context.Context, client *servertest.Client, cursor string, limit int) (next string, err error) {
	answer, err := client.Get(ctx, fmt.Sprintf("/v1/files?limit=%d", limit)+cursorParameter(cursor))
	if err != nil {
		return "", err
	}
	var page struct {
		Files []struct{} `json:"files"`
		Next  string     `json:"next_cursor"`
	}
	if answer.Status == http.StatusOK {
		err = json.Unmarshal(answer.Body, &page)
	}
	if err != nil || len(page.Files) != limit {
		return "", fmt.Errorf("no page of %d files: status %d: %.200s", limit, answer.Status, answer.Body)
	}
	return page.Next, nil
}

func cursorParameter(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "&cursor=" + url.QueryEscape(cursor)
}

// namedPage is a page that is measured.
type namedPage struct {
	name string
	read pageReader
}

// listRows reads all pages in turns and reports each beside the floor.
func (b *bench) listRows(ctx context.Context, what string, floor pageReader, pages []namedPage) error {
	took := make([][]time.Duration, len(pages)+1)
	for range listRounds {
		for i, page := range append([]namedPage{{"", floor}}, pages...) {
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
			ratio: ratio(measured, floor), bar: fmt.Sprintf("%.1f x", listBar),
			verdict: verdictOf(measured.Seconds() <= listBar*floor.Seconds()),
		})
	}
	return nil
}
