import { explainError } from './start/explain-error.ts'
import { serve } from './start/serve.ts'

serve().catch((error: unknown) => {
  process.stderr.write(`${explainError(error)}\n`)
  process.exit(1)
})
