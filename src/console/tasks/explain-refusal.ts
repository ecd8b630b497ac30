import { AgainstEvidenceError, ChangedSinceShownError } from '../../decisions/unit-of-work.ts'
import type { DomainError } from '../../errors.ts'
import { TEXTS } from '../texts/en.ts'

const { refused } = TEXTS.decisions

/** Explains a refused decision in words; undefined for an error that has a page of its own. */
export function explainRefusal(error: DomainError): string | undefined {
  if (error instanceof ChangedSinceShownError) return refused.changed
  return Object.entries(refused).find(([code]) => code === error.code)?.[1]
}

/** Returns what a refused decision contradicts; empty for every other refusal. */
export function listEvidence(error: DomainError): readonly string[] {
  return error instanceof AgainstEvidenceError ? error.evidence : []
}
