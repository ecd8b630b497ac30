import { createRequire } from 'node:module'
import { z } from 'zod'

/** Resolved by the package's own name, which works wherever the build is located. */
const file: unknown = createRequire(import.meta.url)('ipn-processor/package.json')

/** This program's version and licence, from its package.json. */
export const PACKAGE = z.object({ version: z.string(), license: z.string() }).parse(file)
