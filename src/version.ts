import { createRequire } from 'node:module'
import { z } from 'zod'

/** By its own name it is found from wherever the build was put. */
const file: unknown = createRequire(import.meta.url)('ipn-processor/package.json')

/** Of this program, as its package says. */
export const VERSION = z.object({ version: z.string() }).parse(file).version
