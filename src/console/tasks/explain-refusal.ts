import type { DomainError } from '../../errors.ts'
import { listTexts, t } from '../view.ts'

/** Explains a refused decision in words; undefined for an error that has a page of its own. */
export function explainRefusal(error: DomainError): string | undefined {
  if (error.changed) return t('decisions.refused.changed')
  return listTexts('decisions.refused').find(([code]) => code === error.code)?.[1]
}
