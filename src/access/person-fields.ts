import { z } from 'zod'
import { foldName } from './principal.ts'

/** The name of a person, as it stands in the audit log: 1 to 140 printable characters. */
export const PersonName = z
  .string()
  .trim()
  .normalize('NFC')
  .regex(/^[^\p{Cc}\p{Cf}]{1,140}$/u)
  .refine((name) => name.isWellFormed())
  // At every start the demo gives the key of this name a new text.
  .refine((name) => foldName(name) !== 'demo')

export const PersonEmail = z.email().max(254)
