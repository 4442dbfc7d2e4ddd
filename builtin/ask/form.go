package ask

import (
	"encoding/json"

	"tandem/fault"
	"tandem/human"
	"tandem/node"
)

type formConfig struct {
	Config
	_      struct{}    `need:"input_fields|form_schema"`
	Schema node.Object `json:"form_schema" with:"interaction_type=input" doc:"The JSON Schema of the form." zh:"表单的模式：JSON Schema。"`
	Access string      `json:"access" enum:"users|link|public" doc:"Who may fill it in: users, who has the link, or everybody." zh:"谁可填写：用户、持有链接者或所有人。"`
}

func (c *formConfig) Defaults() {
	c.Config.Defaults()
	c.Type, c.Access, c.TimeoutSeconds = human.Input, "users", 86400
}

func formSubmission(d Deps) node.Kind {
	return humanKind(d,
		node.About{
			Name: "HUMAN_IN_THE_LOOP.FORM_SUBMISSION", Title: node.Says("Ask for a form", "填写表单"),
			Description: node.Says("Asks people, or anyone who has the link, to fill in a form.", "请人（或持有链接的任何人）填写表单。"),
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks for an address.", "请求填写地址。"),
					Config:  `{"title": "Where to?", "approvers": ["user:operator"], "input_fields": [{"name": "city", "required": true}]}`,
					Replies: []string{`{"field_values": {"city": "Bern"}}`},
					Output:  `{"result": {"status": "completed", "response_type": "input", "response_data": {"field_values": {"city": "Bern"}, "user_id": "operator", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "operator", "approvals": [{"person": "operator", "outcome": "confirmed", "data": "…", "channel": "in_app", "at": "…", "means": "…"}], "ai_classification": "confirmed", "content": {}}, "confirmed": "same as result"}`,
				},
			},
		},
		func(_ *node.Call, cfg formConfig) (*humanAsking, error) {
			if len(cfg.InputFields) == 0 && len(cfg.Schema) == 0 {
				return nil, fault.New(fault.InvalidConfig, "input_fields: there is nothing to fill in; set input_fields or form_schema").With("path", "configurations.input_fields")
			}
			return &humanAsking{Config: cfg.Config, schema: json.RawMessage(cfg.Schema), access: cfg.Access}, nil
		}, func(p *node.Planning, cfg *formConfig) {
			d.planHuman(p, &cfg.Config, Medium{}, func(draft *humanDraft) { draft.request.Access = cfg.Access })
		})
}
