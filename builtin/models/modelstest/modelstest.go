// Package modelstest has models for tests of kinds that ask one. Only tests import it.
package modelstest

import (
	"context"
	"encoding/json"

	"tandem/builtin/models"
	"tandem/fault"
	"tandem/llm"
	"tandem/llm/scripted"
)

// Scripted are models that answer by rules, under the profile "m".
func Scripted(rules ...llm.Rule) *models.Models {
	return &models.Models{
		Profile: func(_ context.Context, _, id string) (llm.Profile, error) {
			if id != "m" {
				return llm.Profile{}, fault.Newf(fault.NotFound, "there is no profile %q", id)
			}
			return llm.Profile{ID: "m", Provider: "scripted", Script: llm.Script{Rules: rules}}, nil
		},
		Providers: map[string]llm.Factory{"scripted": scripted.New},
		Executor:  llm.NewExecutor(llm.Options{}),
	}
}

// Purse refuses so many calls for lack of a budget, which somebody is asked about, and lets those after them through.
type Purse struct{ Refuses int }

// Reserve implements [models.Purse].
func (p *Purse) Reserve(context.Context, models.Spending) (string, error) {
	if p.Refuses > 0 {
		p.Refuses--
		return "", &models.Exhausted{Budget: "p/day/x", Request: json.RawMessage(`{"budget":"p/day/x"}`), Asks: true}
	}
	return "reserved", nil
}

// Return implements [models.Purse].
func (p *Purse) Return(context.Context, string, string, llm.Usage, llm.Price) error { return nil }
