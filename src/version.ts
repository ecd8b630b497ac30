import { createRequire } from 'node:module'
import { z } from 'zod'

/** By its own name it is found from wherever the build was put. */
const file: unknown = createRequire(import.meta.url)('ipn-processor/package.json')

/** This program's version and licence, as its package says. */
export const PACKAGE = z.object({ version: z.string(), license: z.string() }).parse(file)
