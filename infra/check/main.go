// Command check calls a deployment in AWS like its clients and reports facts that only a real
// account can show: roles, queues, and workers that start. With -before it compares the account's quotas with the
// requirements of a deployment. `make check-deploy` and `make deploy` run it.
//
// Its arguments are flags, "--" and the arguments of CDK, from which it reads the context.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/catalog"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

type options struct {
	before, local              bool
	receiver, media, inference string
	uploadSize                 int64
	streamTime                 time.Duration
	only                       []string // if empty, all checks run
	context                    map[string]string
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.BoolVar(&o.before, "before", false, "only check whether the account can hold the deployment")
	flags.BoolVar(&o.local, "local", false, "the deployment is in the local AWS at AWS_ENDPOINT_URL, which has no workers and alarms of its own")
	flags.StringVar(&o.receiver, "receiver", "", "public URL for a test webhook, which must return 2xx")
	flags.Int64Var(&o.uploadSize, "upload-size", 101<<20, "size of the large upload, in bytes")
	flags.DurationVar(&o.streamTime, "stream", 3*time.Minute, "minimum duration of a stream")
	flags.StringVar(&o.media, "media-url", "", "base URL of the media service, instead of the deployment's output")
	flags.StringVar(&o.inference, "inference-url", "", "base URL of the gateway, instead of the deployment's output")
	flags.Func("only", "names of the checks to run, separated by commas", func(list string) error {
		o.only = strings.Split(list, ",")
		for _, name := range o.only {
			if !slices.ContainsFunc(checks(), func(c check) bool { return c.name == name }) {
				return fmt.Errorf("unknown check %q", name)
			}
		}
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.context = contextOf(flags.Args())
	return o, nil
}

// contextFlag matches a context value in arguments separated by NUL bytes.
var contextFlag = regexp.MustCompile(`(?:^|\x00)(?:-c|--context)(?:=|\x00|)([^=\x00]+)=([^\x00]*)`)

// contextOf returns the context in CDK's arguments. If a name is repeated, its last value wins.
func contextOf(arguments []string) map[string]string {
	found := map[string]string{}
	for _, pair := range contextFlag.FindAllStringSubmatch(strings.Join(arguments, "\x00"), -1) {
		found[pair[1]] = pair[2]
	}
	return found
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	settings, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %w", err)
	}
	if settings.Region == "" {
		return errors.New("no AWS region is set: set AWS_REGION, or AWS_PROFILE to a profile with a region")
	}
	if o.before {
		return before(ctx, settings, o.context, out)
	}
	v, err := newVisit(ctx, settings, o, out)
	if err != nil {
		return err
	}
	if err := v.checkAll(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped, as account %s.\n", v.count[held], v.count[failed],
		v.count[skipped], v.account)
	if v.count[failed] > 0 {
		return fmt.Errorf("%d of %d checks failed", v.count[failed], v.count[held]+v.count[failed])
	}
	return nil
}

func newVisit(ctx context.Context, settings aws.Config, o options, out io.Writer) (*visit, error) {
	known, err := setting.Catalog(cmp.Or(o.context["family"], os.Getenv("CUTROOM_FAMILY"), catalog.DefaultFamily),
		cmp.Or(o.context["catalog"], os.Getenv("CUTROOM_CATALOG")))
	if err != nil {
		return nil, err
	}
	deploy, err := find(ctx, settings, cmp.Or(o.context["stage"], "dev"))
	if err != nil {
		return nil, err
	}
	deploy.noWorker = o.context["worker"] == "none"
	if o.local {
		endpoint := aws.ToString(settings.BaseEndpoint)
		deploy.mediaURL, deploy.inferenceURL = localURL(endpoint, deploy.mediaURL), localURL(endpoint, deploy.inferenceURL)
	}
	deploy.mediaURL = strings.TrimRight(cmp.Or(o.media, deploy.mediaURL), "/")
	deploy.inferenceURL = strings.TrimRight(cmp.Or(o.inference, deploy.inferenceURL), "/")
	v := &visit{
		options: o, deploy: deploy, cloud: newCloud(settings, deploy), out: out,
		poll: 2 * time.Second, wakeTime: 30 * time.Second,
		keys: dynamo.NewKeys(dynamo.NewClient(settings), dynamo.TableName(deploy.stage, "credentials"),
			dynamo.TableName(deploy.stage, "usage")),
	}
	return v, v.choose(known)
}

// localURL returns the address of an API in a local AWS, which does not resolve the host names of its outputs.
func localURL(endpoint, output string) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(output, "https://"), "/")
	id, _, _ := strings.Cut(host, ".")
	return endpoint + "/restapis/" + id + "/" + strings.Trim(path, "/") + "/_user_request_"
}

func (v *visit) choose(known *catalog.Catalog) error {
	v.video, _ = known.First(catalog.TextToVideo)
	v.image, _ = known.First(catalog.Image)
	if v.video == nil || v.image == nil {
		return errors.New("the checks need a text-to-video model and an image model in the catalog")
	}
	for _, m := range known.Models() {
		if m.Realtime {
			v.live = m
		}
	}
	return nil
}
