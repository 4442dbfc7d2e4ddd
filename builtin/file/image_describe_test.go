package file_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"tandem/builtin/file"
	"tandem/builtin/models/modelstest"
	"tandem/llm"
	"tandem/node"
	"tandem/node/nodetest"
)

func TestImageProcessor_Describes(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	models := modelstest.Scripted(llm.Rule{Contains: "which colour", Reply: "black"})
	k := nodetest.Of(file.Kinds(file.Deps{Models: models})...).Kind(t, "TOOL.IMAGE_PROCESSOR")
	call := nodetest.NewCall(t, `{"vision_profile": "m", "tool_name": "image_describe"}`,
		`{"function_args": {"question": "which colour is it?", "file": {"name": "p.png", "base64": "`+base64.StdEncoding.EncodeToString(picture.Bytes())+`"}}}`)
	call.Used, call.Detail = func(node.Usage) {}, func(map[string]any) {}
	out, err := k.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out.(node.Done)["result"]); !strings.Contains(got, `"description":"black"`) {
		t.Errorf("got %s", got)
	}
	// A model is offered the tool only when there is somebody to ask.
	for config, want := range map[string]bool{`{}`: false, `{"vision_profile": "m"}`: true} {
		offered, err := k.Tools(t.Context(), nodetest.NewCall(t, config, `{}`))
		if err != nil {
			t.Fatal(err)
		}
		has := false
		for _, o := range offered {
			has = has || o.Name == "image_describe"
		}
		if has != want {
			t.Errorf("%s offers %+v", config, offered)
		}
	}
}
