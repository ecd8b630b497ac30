import type { DomainError } from '../../errors.ts'
import { TEXTS } from '../texts/en.ts'

const { refused } = TEXTS.decisions

/** Explains a refused decision in words; undefined for an error that has a page of its own. */
export function explainRefusal(error: DomainError): string | undefined {
  if (error.changed) return refused.changed
  return Object.entries(refused).find(([code]) => code === error.code)?.[1]
}
