import { playFormStories } from './forms/play-stories.ts'
import { playRefundFormStories } from './refund-form/play-stories.ts'
import { playCallStories } from './story/play-stories.ts'
import { playTaskStories } from './tasks/play-stories.ts'

// Without scripts, and with every form, they are played at night (`test/nightly/stories.test.ts`).
playCallStories(true)
playFormStories(true, 'en', /filters|note|new person/)
playRefundFormStories(true)
playTaskStories(true)
