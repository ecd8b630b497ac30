import { AgainstEvidenceError, ChangedSinceShownError } from '../../decisions/unit-of-work.ts'
import type { DomainError } from '../../errors.ts'
import { listTexts, t } from '../view.ts'

/** Explains a refused decision in words; undefined for an error that has a page of its own. */
export function explainRefusal(error: DomainError): string | undefined {
  if (error instanceof ChangedSinceShownError) return t('decisions.refused.changed')
  return listTexts('decisions.refused').find(([code]) => code === error.code)?.[1]
}

/** Returns what a refused decision contradicts; empty for every other refusal. */
export function listEvidence(error: DomainError): readonly string[] {
  return error instanceof AgainstEvidenceError ? error.evidence : []
}
