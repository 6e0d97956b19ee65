package main

import (
	"regexp"
	"strings"
)

// gpu describes the engine servers that replace the preview workers (docs/gpu-operations.md).
type gpu struct {
	On bool
	// Prepared creates the engine servers' stack while the preview workers continue.
	Prepared bool
	// Network is the deployer's VPC and its private subnets, one in each of Zones. If it is empty, a new VPC with the address
	// block NetworkCIDR is created.
	Network     network
	NetworkCIDR string
	Zones       zones
	// Instances lists instance types in order of preference.
	Instances []string
	// Spot adds spot instances to the on-demand instances, whose number is OnDemand.
	Spot     bool
	OnDemand int
	// Min and Max limit the number of tasks. Each task has its own GPU.
	Min, Max int
	// Backlog is the number of jobs per task, including the one in progress, above which another task is started.
	Backlog int
	// Idle is the time without a job, in minutes, after which all tasks stop.
	Idle int
	// Disk is the size of an instance's disk, in GiB, for images and weights.
	Disk int
	// WarmPool is the number of stopped instances kept ready.
	WarmPool int
	// Models is the path, in the repository, of the model map for the engine's image.
	Models string
	// Weights is the S3 prefix that replaces the folder /models in the model map. If no bucket is set, the prefix is
	// in the stage's bucket.
	Weights s3Prefix
	// EngineImage is the image of the engine server. If it is empty, the image is built from the repository.
	EngineImage string
}

func (g gpu) made() bool { return g.On || g.Prepared }

// weightsInS3 reports whether engine servers read weights from S3. A deployer's own image contains
// its weights, unless a bucket for weights is given.
func (g gpu) weightsInS3() bool { return g.EngineImage == "" || g.Weights.Bucket != "" }

type s3Prefix struct{ Bucket, Prefix string }

var s3URL = regexp.MustCompile(`^s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9!_.'()/-]*))?$`)

func (r *reader) gpu() gpu {
	g := gpu{
		On:          r.oneOf("gpu", "false", "false", "prepare", "true") == "true",
		Prepared:    r.text("gpu") == "prepare",
		Network:     network{VPC: r.pattern("gpu.vpc", "", `^$|^vpc-`, "the id of a VPC"), Subnets: r.list("gpu.subnets", "")},
		NetworkCIDR: r.cidr("gpu.networkCidr"),
		Zones:       r.zones("gpu.zones", gpuZones()),
		Instances:   r.list("gpu.instances", "g6e.2xlarge,g6e.4xlarge"),
		Spot:        r.oneOf("gpu.spot", "false", "false", "true") == "true",
		OnDemand:    r.number("gpu.onDemand", 0, 0, 100),
		Min:         r.number("gpu.min", 0, 0, 100),
		Max:         r.number("gpu.max", 2, 1, 100),
		Backlog:     r.number("gpu.backlog", 2, 1, 100),
		Idle:        r.number("gpu.idle", 15, 5, 24*60),
		Disk:        r.number("gpu.disk", 500, 60, 16<<10),
		WarmPool:    r.number("gpu.warmPool", 0, 0, 100),
		Models:      r.file("gpu.models"),
		EngineImage: r.pattern("gpu.engineImage", "", `^$|`+ecrImage.String(), "an image in ECR"),
	}
	g.Weights.Prefix = "weights"
	if text := r.pattern("gpu.weights", "", `^$|`+s3URL.String(),
		"a prefix in S3, such as s3://bucket/weights"); text != "" {
		if found := s3URL.FindStringSubmatch(text); found != nil {
			g.Weights = s3Prefix{found[1], strings.Trim(found[2], "/")}
		}
	}
	r.gpuRelations(g)
	return g
}

func (r *reader) gpuRelations(g gpu) {
	for _, name := range g.Instances {
		// G5g has Arm processors, which the engine image does not support.
		if !regexp.MustCompile(`^[a-z][a-z0-9-]*\.[a-z0-9-]+$`).MatchString(name) || strings.HasPrefix(name, "g5g.") {
			r.fail("gpu.instances", "x86-64 instance types with GPUs, not %q", name)
		}
	}
	n := len(g.Network.Subnets)
	r.reject(g.Network.set() != (n > 0) || n > 0 && n != len(g.Zones.Names),
		"gpu.vpc", "and gpu.subnets must be set together, with the name of each subnet's zone in gpu.zones")
	if g.Min > g.Max {
		r.fail("gpu.min", "at most gpu.max, which is %d", g.Max)
	}
	r.reject(g.OnDemand > 0 && !g.Spot, "gpu.onDemand", "requires gpu.spot=true")
	// EC2 Auto Scaling has warm pools only for on-demand instances of one type.
	r.reject(g.WarmPool > 0 && (g.Spot || len(g.Instances) > 1), "gpu.warmPool", "requires gpu.spot=false and a single type in gpu.instances")
	r.reject(g.Models != "" && g.EngineImage != "", "gpu.models", "must not be set with gpu.engineImage, which has its own model map")
	if !g.made() {
		for _, key := range r.known {
			if strings.HasPrefix(key, "gpu.") && r.values[key] != nil {
				r.conflict(key, "requires gpu=prepare or gpu=true")
			}
		}
	}
}
