package builtin

import (
	"encoding/json"

	"tandem/fault"
	"tandem/human"
	"tandem/node"
)

type formConfig struct {
	humanConfig
	Schema node.Object `json:"form_schema"`
	Access string      `json:"access" enum:"users|link|public"`
}

func (c *formConfig) Defaults() {
	c.humanConfig.Defaults()
	c.Type, c.Access, c.TimeoutSeconds = human.Input, "users", 86400
}

func formSubmission() node.Kind {
	return humanKind(
		info("HUMAN_IN_THE_LOOP.FORM_SUBMISSION", "Ask for a form", "填写表单", "Asks people, or whoever has the link, to fill in a form.", "请人（或持有链接的任何人）填写表单。"),
		func(_ *node.Call, cfg formConfig) (*humanAsking, error) {
			if len(cfg.InputFields) == 0 && len(cfg.Schema) == 0 {
				return nil, fault.New(fault.InvalidConfig, "input_fields: there is nothing to fill in; set input_fields or form_schema").With("path", "configurations.input_fields")
			}
			return &humanAsking{humanConfig: cfg.humanConfig, schema: json.RawMessage(cfg.Schema), access: cfg.Access}, nil
		})
}
