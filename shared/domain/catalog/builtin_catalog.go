// Code generated from catalog.yaml by go generate; DO NOT EDIT.

package catalog

// builtin returns catalog.yaml with the models of a family.
func builtin(family string) catalogFile {
	return catalogFile{
		Limits: struct {
			Video struct {
				Duration string
				Width    int
				Height   int
			}
			Image struct{ Pixels int }
		}{
			Video: struct {
				Duration string
				Width    int
				Height   int
			}{
				Duration: "5m",
				Width:    4096,
				Height:   4096,
			},
			Image: struct{ Pixels int }{
				Pixels: 50000000,
			},
		},
		Forms: map[string]formEntry{
			"clip": {
				Fields: []fieldEntry{
					{
						Name:        "data",
						Type:        "video",
						Required:    true,
						Description: "The video to edit.",
					},
					{
						Name:        "prompt",
						Type:        "text",
						Required:    true,
						Max:         new(int64(4000)),
						Description: "What to change.",
					},
					{
						Name:        "reference_image",
						Also:        "reference_image.0",
						Type:        "image",
						Description: "A picture of what the edit should look like.",
					},
					{
						Name:        "seed",
						Type:        "integer",
						Min:         new(int64(0)),
						Max:         new(int64(4294967295)),
						Description: "The same request with the same seed gives the same result.",
					},
					{
						Name:        "resolution",
						Type:        "choice",
						Default:     "720p",
						Values:      []string{"720p"},
						Description: "The size of the result.",
					},
					{
						Name:        "enhance_prompt",
						Type:        "boolean",
						Default:     true,
						Description: "Whether to enhance the prompt.",
					},
				},
			},
			"edit": {
				Fields: []fieldEntry{
					{
						Name:        "data",
						Type:        "video",
						Required:    true,
						Description: "The video to edit.",
					},
					{
						Name:        "prompt",
						Type:        "text",
						Default:     "",
						Max:         new(int64(4000)),
						Description: "What to change.",
					},
					{
						Name:        "reference_image",
						Also:        "reference_image.0",
						Type:        "image",
						Description: "A picture of what the edit should look like, or of the garment to try on.",
					},
					{
						Name:        "seed",
						Type:        "integer",
						Min:         new(int64(0)),
						Max:         new(int64(4294967295)),
						Description: "The same request with the same seed gives the same result.",
					},
					{
						Name:        "resolution",
						Type:        "choice",
						Default:     "720p",
						Values:      []string{"720p"},
						Description: "The size of the result.",
					},
					{
						Name:        "enhance_prompt",
						Type:        "boolean",
						Default:     true,
						Description: "Whether to enhance the prompt.",
					},
				},
			},
			"edit-self-anchored": {
				Fields: []fieldEntry{
					{
						Name:        "data",
						Type:        "video",
						Required:    true,
						Description: "The video to edit.",
					},
					{
						Name:        "prompt",
						Type:        "text",
						Default:     "",
						Max:         new(int64(4000)),
						Description: "What to change.",
					},
					{
						Name:        "reference_image",
						Also:        "reference_image.0",
						Type:        "image",
						Description: "A picture of what the edit should look like.",
					},
					{
						Name:        "seed",
						Type:        "integer",
						Min:         new(int64(0)),
						Max:         new(int64(4294967295)),
						Description: "The same request with the same seed gives the same result.",
					},
					{
						Name:        "resolution",
						Type:        "choice",
						Default:     "720p",
						Values:      []string{"720p"},
						Description: "The size of the result.",
					},
					{
						Name:        "enhance_prompt",
						Type:        "boolean",
						Default:     true,
						Description: "Whether to enhance the prompt.",
					},
					{
						Name:        "self_anchor",
						Type:        "boolean",
						Default:     true,
						Description: "Whether the first edited frame anchors the later ones.",
					},
				},
			},
			"image": {
				Fields: []fieldEntry{
					{
						Name:        "data",
						Type:        "image",
						Required:    true,
						Description: "The image to edit.",
					},
					{
						Name:        "prompt",
						Type:        "text",
						Required:    true,
						Max:         new(int64(4000)),
						Description: "What to change.",
					},
					{
						Name:        "reference_image",
						Also:        "reference_image.0",
						Type:        "image",
						Description: "A picture of what the edit should look like.",
					},
					{
						Name:        "seed",
						Type:        "integer",
						Min:         new(int64(0)),
						Max:         new(int64(4294967295)),
						Description: "The same request with the same seed gives the same result.",
					},
					{
						Name:        "resolution",
						Type:        "choice",
						Default:     "720p",
						Values:      []string{"720p", "480p"},
						Description: "The size of the result.",
					},
					{
						Name:        "enhance_prompt",
						Type:        "boolean",
						Default:     true,
						Description: "Whether to enhance the prompt.",
					},
				},
			},
			"image-to-video": {
				Fields: []fieldEntry{
					{
						Name:        "data",
						Type:        "image",
						Required:    true,
						Description: "The picture that the video starts with.",
					},
					{
						Name:        "prompt",
						Type:        "text",
						Default:     "",
						Max:         new(int64(4000)),
						Description: "What should happen in the video.",
					},
					{
						Name:        "reference_image",
						Also:        "last_image",
						Type:        "image",
						Description: "The picture that the video ends with.",
					},
					{
						Name:        "seed",
						Type:        "integer",
						Min:         new(int64(0)),
						Max:         new(int64(4294967295)),
						Description: "The same request with the same seed gives the same result.",
					},
					{
						Name:        "resolution",
						Type:        "choice",
						Default:     "720p",
						Values:      []string{"720p", "480p"},
						Description: "The size of the result.",
					},
					{
						Name:        "enhance_prompt",
						Type:        "boolean",
						Default:     true,
						Description: "Whether to enhance the prompt.",
					},
				},
			},
			"restyle": {
				Fields: []fieldEntry{
					{
						Name:        "data",
						Type:        "video",
						Required:    true,
						Description: "The video to restyle.",
					},
					{
						Name:        "prompt",
						Type:        "text",
						Max:         new(int64(4000)),
						Description: "The look to give the video. Send this or a reference image.",
					},
					{
						Name:        "reference_image",
						Also:        "reference_image.0",
						Type:        "image",
						Description: "A picture whose look is applied to the video.",
					},
					{
						Name:        "seed",
						Type:        "integer",
						Min:         new(int64(0)),
						Max:         new(int64(4294967295)),
						Description: "The same request with the same seed gives the same result.",
					},
					{
						Name:        "resolution",
						Type:        "choice",
						Default:     "720p",
						Values:      []string{"720p"},
						Description: "The size of the result.",
					},
					{
						Name:        "enhance_prompt",
						Type:        "boolean",
						Default:     true,
						Description: "Whether to enhance the prompt.",
					},
				},
				ExactlyOne: []string{"prompt", "reference_image"},
				OnlyWith: map[string]string{
					"enhance_prompt": "prompt",
				},
			},
			"text-to-video": {
				Fields: []fieldEntry{
					{
						Name:        "prompt",
						Type:        "text",
						Required:    true,
						Max:         new(int64(4000)),
						Description: "What the video should show.",
					},
					{
						Name:        "seed",
						Type:        "integer",
						Min:         new(int64(0)),
						Max:         new(int64(4294967295)),
						Description: "The same request with the same seed gives the same result.",
					},
					{
						Name:        "resolution",
						Type:        "choice",
						Default:     "720p",
						Values:      []string{"720p", "480p"},
						Description: "The size of the result.",
					},
					{
						Name:        "orientation",
						Type:        "choice",
						Default:     "landscape",
						Values:      []string{"landscape", "portrait"},
						Description: "Which side of the picture is the longer one.",
					},
					{
						Name:        "enhance_prompt",
						Type:        "boolean",
						Default:     true,
						Description: "Whether to enhance the prompt.",
					},
				},
				URLEncoded: true,
			},
		},
		Models: []modelEntry{
			{
				ID:                family + "-restyle-2",
				Aliases:           []string{family + "-restyle-latest"},
				DeprecatedAliases: []string{family + "-restyle-v2v"},
				Kind:              "restyle",
				Form:              "restyle",
				Realtime:          true,
				Sizes: map[string]string{
					"720p": "1280x704",
				},
				FPS:         25,
				Description: "Restyle a video.",
				Title:       "Restyle a video",
				Examples:    []string{"film noir", "anime", "comic book", "oil painting"},
			},
			{
				ID:       family + "-2.5",
				Aliases:  []string{family + "-latest"},
				Kind:     "edit",
				Form:     "edit-self-anchored",
				Realtime: true,
				Sizes: map[string]string{
					"720p": "1280x720",
				},
				FPS:         20,
				Description: "Edit a video with an optional prompt and reference image. Self-anchored by default.",
				Title:       "Edit a video",
				Examples:    []string{"watercolor painting", "blur the background", "slow motion", "crop to square", "first 3 seconds", "black and white"},
			},
			{
				ID:       family + "-2.6",
				Kind:     "edit",
				Form:     "edit-self-anchored",
				Realtime: true,
				Sizes: map[string]string{
					"720p": "1280x720",
				},
				FPS:         20,
				Description: "Edit a video with an optional prompt and reference image. Self-anchored by default.",
				Title:       "Edit a video, newest model",
				Examples:    []string{"watercolor painting", "blur the background", "slow motion"},
			},
			{
				ID:       family + "-2.1",
				Kind:     "edit",
				Form:     "edit",
				Realtime: true,
				Sizes: map[string]string{
					"720p": "1088x624",
				},
				FPS:         20,
				Description: "Edit a video with an optional prompt and reference image.",
				Title:       "Edit a video, in a smaller size",
				Examples:    []string{"a watercolor painting", "film noir", "pencil sketch"},
			},
			{
				ID:       family + "-vton-3.6",
				Aliases:  []string{family + "-vton-latest"},
				Kind:     "try-on",
				Form:     "edit",
				Realtime: true,
				Sizes: map[string]string{
					"720p": "1280x720",
				},
				FPS:         20,
				Description: "Virtual try-on in a video.",
				Title:       "Try on a garment",
				Examples:    []string{"wearing this jacket", "wearing this shirt"},
			},
			{
				ID:                family + "-vton-3.5",
				DeprecatedAliases: []string{family + "-vton-3", family + "-vton-2", family + "-2.1-vton-2"},
				Kind:              "try-on",
				Form:              "edit",
				Realtime:          true,
				Sizes: map[string]string{
					"720p": "1280x720",
				},
				FPS:         20,
				Description: "Virtual try-on in a video.",
				Title:       "Try on a garment, earlier model",
				Examples:    []string{"wearing this jacket", "wearing this shirt"},
			},
			{
				ID:                family + "-clip",
				Aliases:           []string{family + "-clip-latest"},
				DeprecatedAliases: []string{family + "-pro-v2v"},
				Kind:              "clip",
				Form:              "clip",
				Generate:          "deprecated",
				Sizes: map[string]string{
					"720p": "1280x704",
				},
				FPS:         25,
				Description: "Previous-generation clip edit.",
				Title:       "Edit a clip, previous generation",
				Examples:    []string{"golden hour", "snowy winter", "film noir"},
			},
			{
				ID:       family + "-pro-t2v",
				Kind:     "text-to-video",
				Form:     "text-to-video",
				Generate: "deprecated",
				Sizes: map[string]string{
					"480p": "832x480",
					"720p": "1280x704",
				},
				FPS:         25,
				Duration:    "5s",
				Description: "Make a video from text.",
				Title:       "Make a video from text",
				Examples:    []string{"aurora over the mountains", "a sailing boat at sunset", "city lights in the rain"},
			},
			{
				ID:                family + "-image-2",
				Aliases:           []string{family + "-image-latest"},
				DeprecatedAliases: []string{family + "-pro-i2i"},
				Kind:              "image",
				Form:              "image",
				Generate:          "image",
				Sizes: map[string]string{
					"480p": "832x480",
					"720p": "1280x704",
				},
				Description: "Edit an image.",
				Title:       "Edit an image",
				Examples:    []string{"pencil sketch", "remove the background", "crop to square", "black and white", "golden hour"},
			},
			{
				ID:   family + "-pro-i2v",
				Kind: "image-to-video",
				Form: "image-to-video",
				Sizes: map[string]string{
					"480p": "832x480",
					"720p": "1280x704",
				},
				FPS:         25,
				Duration:    "5s",
				Description: "Make a video that starts with an image.",
				Title:       "Make a video from an image",
				Examples:    []string{"the camera moves slowly closer", "she smiles and waves", "waves roll onto the beach"},
			},
		},
		Inference: []inferenceEntry{
			{
				ID:              "cutroom-echo",
				Description:     "A demonstration without a language model. It composes its replies from the request. Replace it with a model server.",
				Routes:          []Route{"chat", "completions", "embeddings"},
				ContextLength:   32768,
				MaxOutputLength: 4096,
				Upstreams: []upstreamEntry{
					{
						URL:   "embedded:",
						Model: "cutroom-echo",
					},
				},
			},
			{
				ID:          "cutroom-chat",
				Description: "A name reserved for the first language model of this deployment.",
				Placeholder: true,
			},
		},
	}
}
